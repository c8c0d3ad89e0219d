package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is the value of a flag that is one of a few words.
type choice struct {
	value   *string
	allowed []string
}

var _ pflag.Value = choice{}

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return fmt.Errorf("it is one of %s", strings.Join(c.allowed, ", "))
	}
	*c.value = text
	return nil
}

// addOutput adds -o, whose values the command knows; the first is its default.
func addOutput(cmd *cobra.Command, value *string, allowed ...string) {
	addChoice(cmd, value, "output", "o", "Output format.", allowed...)
}

func addChoice(cmd *cobra.Command, value *string, name, shorthand, usage string, allowed ...string) {
	*value = allowed[0]
	cmd.Flags().VarP(choice{value, allowed}, name, shorthand, fmt.Sprintf("%s One of: (%s).", usage, strings.Join(allowed, ", ")))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}
