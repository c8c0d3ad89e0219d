package contract

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
)

// StatementsPath is where the controller mounts the key of the ConfigMap that
// spec.workload.sql.configMapKeyRef names. It goes into SQL.StatementsFile.
const StatementsPath = "/etc/dbbench/sql/statements.sql"

// SQL is the user's own statements. Its JSON is that of the resource's field, with
// statementsFile in the place of configMapKeyRef.
type SQL struct {
	Setup   string `json:"setup,omitempty"`
	Pre     string `json:"pre,omitempty"`
	Post    string `json:"post,omitempty"`
	Cleanup string `json:"cleanup,omitempty"`

	Statements []SQLStatement `json:"statements,omitempty"`
	// StatementsFile is the path of a text with the statements, each an event.
	StatementsFile string         `json:"statementsFile,omitempty"`
	Order          string         `json:"order"`
	Parameters     []SQLParameter `json:"parameters,omitempty"`
	RetryErrors    []int32        `json:"retryErrors,omitempty"`
	Seed           *int64         `json:"seed,omitempty"`
}

// SQLStatement is an event: one statement, or several in a transaction.
type SQLStatement struct {
	Name        string `json:"name"`
	SQL         string `json:"sql"`
	Weight      int32  `json:"weight"`
	Transaction bool   `json:"transaction,omitempty"`
}

// SQLParameter generates a value for each event.
type SQLParameter struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Min    int64    `json:"min"`
	Max    int64    `json:"max"`
	Values []string `json:"values,omitempty"`
}

// The orders of the statements.
const (
	OrderWeighted   = "Weighted"
	OrderSequential = "Sequential"
)

// The generators of parameters.
const (
	ParameterSequence = "Sequence"
	ParameterUniform  = "Uniform"
	ParameterZipfian  = "Zipfian"
	ParameterString   = "String"
	ParameterList     = "List"
)

// MaxParameterText is the longest text in bytes that a parameter of type String has.
const MaxParameterText = 1 << 20

var parameterName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

func (s *SQL) validate() error {
	switch {
	case (len(s.Statements) == 0) == (s.StatementsFile == ""):
		return errors.New("workload.sql: exactly one of statements and statementsFile must be set")
	case len(s.Statements) > MaxOperations:
		return fmt.Errorf("workload.sql.statements: %d statements, at most %d are possible: put them into a file, whose statements are counted by kind",
			len(s.Statements), MaxOperations)
	case s.Order != OrderWeighted && s.Order != OrderSequential:
		return fmt.Errorf("workload.sql.order is %q, must be %s or %s", s.Order, OrderWeighted, OrderSequential)
	}
	if err := s.validateStatements(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, p := range s.Parameters {
		field := fmt.Sprintf("workload.sql.parameters[%d]", i)
		if seen[p.Name] {
			return fmt.Errorf("%s: the name %q is there twice", field, p.Name)
		}
		seen[p.Name] = true
		if err := p.validate(field); err != nil {
			return err
		}
	}
	for _, number := range s.RetryErrors {
		if number < 1 || number > math.MaxUint16 {
			return fmt.Errorf("workload.sql.retryErrors: %d is not an error number, which are 1 to 65535", number)
		}
	}
	return nil
}

func (s *SQL) validateStatements() error {
	seen := map[string]bool{}
	var weights int64
	for i, st := range s.Statements {
		field := fmt.Sprintf("workload.sql.statements[%d]", i)
		switch {
		case st.Name == "" || len(st.Name) > 63:
			return fmt.Errorf("%s.name is %q, must be 1 to 63 bytes long", field, st.Name)
		case seen[st.Name]:
			return fmt.Errorf("%s: the name %q is there twice", field, st.Name)
		case st.Weight < 0:
			return fmt.Errorf("%s.weight is %d, must not be negative", field, st.Weight)
		}
		seen[st.Name] = true
		weights += int64(st.Weight)
	}
	if len(s.Statements) > 0 && s.Order == OrderWeighted && weights == 0 {
		return errors.New("workload.sql.statements: all weights are 0, so that none would be drawn")
	}
	return nil
}

func (p *SQLParameter) validate(field string) error {
	types := []string{ParameterSequence, ParameterUniform, ParameterZipfian, ParameterString, ParameterList}
	switch {
	case !parameterName.MatchString(p.Name):
		return fmt.Errorf("%s.name is %q, must be at most 63 letters, digits and '_', and not begin with a digit", field, p.Name)
	case !slices.Contains(types, p.Type):
		return fmt.Errorf("%s.type is %q, must be one of %v", field, p.Type, types)
	case p.Type == ParameterList && len(p.Values) == 0:
		return fmt.Errorf("%s.values is empty: a List is drawn from them", field)
	case p.Type != ParameterList && len(p.Values) > 0:
		return fmt.Errorf("%s.values goes with type List", field)
	case p.Type == ParameterList:
		return nil
	case p.Min > p.Max:
		return fmt.Errorf("%s: min is %d, must not be greater than max, %d", field, p.Min, p.Max)
	case p.Type == ParameterString && (p.Min < 0 || p.Max > MaxParameterText):
		return fmt.Errorf("%s: min and max are the length of a text, and must be 0 to %d", field, MaxParameterText)
	case p.Min < math.MinInt64/4 || p.Max > math.MaxInt64/4:
		return fmt.Errorf("%s: min and max must lie within %d and %d", field, math.MinInt64/4, math.MaxInt64/4)
	}
	return nil
}
