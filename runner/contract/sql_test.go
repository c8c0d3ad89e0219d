package contract

import (
	"fmt"
	"strings"
	"testing"
)

func TestSQLValidate(t *testing.T) {
	for _, tt := range []struct {
		want   string // part of the error, "" for none
		change func(*SQL)
	}{
		{"", func(*SQL) {}},
		{"", func(s *SQL) { s.Statements, s.StatementsFile = nil, StatementsPath }},
		{"", func(s *SQL) { s.Order, s.Statements[0].Weight = OrderSequential, 0 }},
		{"", func(s *SQL) { s.Parameters = []SQLParameter{{Name: "p", Type: ParameterList, Values: []string{"a"}}} }},
		{"exactly one", func(s *SQL) { s.Statements = nil }},
		{"exactly one", func(s *SQL) { s.StatementsFile = StatementsPath }},
		{"put them into a file", func(s *SQL) {
			for i := range MaxOperations {
				s.Statements = append(s.Statements, SQLStatement{Name: fmt.Sprint(i), Weight: 1})
			}
		}},
		{"order", func(s *SQL) { s.Order = "Random" }},
		{"statements[0].name", func(s *SQL) { s.Statements[0].Name = "" }},
		{"twice", func(s *SQL) { s.Statements = append(s.Statements, s.Statements[0]) }},
		{"weight is -1", func(s *SQL) { s.Statements[0].Weight = -1 }},
		{"all weights", func(s *SQL) { s.Statements[0].Weight = 0 }},
		{"parameters[1]: the name", func(s *SQL) { s.Parameters = append(s.Parameters, s.Parameters[0]) }},
		{"parameters[0].name", func(s *SQL) { s.Parameters[0].Name = "1a" }},
		{"parameters[0].type", func(s *SQL) { s.Parameters[0].Type = "Pareto" }},
		{"min is 2", func(s *SQL) { s.Parameters[0].Min, s.Parameters[0].Max = 2, 1 }},
		{"length of a text", func(s *SQL) { s.Parameters[0].Type, s.Parameters[0].Min = ParameterString, -1 }},
		{"must lie within", func(s *SQL) { s.Parameters[0].Max = 1 << 62 }},
		{"values is empty", func(s *SQL) { s.Parameters[0].Type = ParameterList }},
		{"values goes with", func(s *SQL) { s.Parameters[0].Values = []string{"a"} }},
		{"retryErrors", func(s *SQL) { s.RetryErrors = []int32{0} }},
	} {
		s := SQL{Order: OrderWeighted, Statements: []SQLStatement{{Name: "one", SQL: "SELECT 1", Weight: 1}},
			Parameters: []SQLParameter{{Name: "id", Type: ParameterUniform, Min: 1, Max: 100}}}
		tt.change(&s)
		err := s.validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", s, err, tt.want)
		}
	}
}
