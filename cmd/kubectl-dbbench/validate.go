package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newValidate(e *env) *cobra.Command {
	var f files
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check benchmarks without a cluster",
		Long: `Check benchmarks without a cluster: the schema, the rules across fields, and the
planner's own checks of sweeps, thresholds and schedules.`,
		Example: "  kubectl dbbench validate -f bench.yaml",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			all, err := f.read(e)
			if err != nil {
				return err
			}
			for _, p := range all {
				fmt.Fprintf(e.Out, "%s: %s is valid: %s\n", p.source, p.name(), count(len(p.runs), "run"))
			}
			return nil
		},
	}
	f.addFlags(cmd.Flags())
	return cmd
}

// count is a number with its noun, such as 1 run or 12 runs.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
