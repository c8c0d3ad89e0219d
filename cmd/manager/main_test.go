package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		args string
		says string
	}{
		{"--runner-image=x", ""},
		{"--runner-image=x --namespace=team --leader-elect --metrics-bind-address=0", ""},
		{"", "--runner-image must be set"},
		{"--runner-image=x more", `unexpected argument "more"`},
		{"--runner-image=x --no-such-flag", "no-such-flag"},
	} {
		var stderr bytes.Buffer
		_, err := parse(strings.Fields(tc.args), &stderr)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%q: %v, want %q", tc.args, err, tc.says)
		}
	}
}
