package contract

import (
	"encoding/json"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1": 1, "1024": 1 << 10, "1Ki": 1 << 10, "1Mi": 1 << 20, "1.5Ki": 1536, "0.5Mi": 1 << 19, "2k": 2000,
		"1e3": 1000, "1E3": 1000, "1.5e1": 15, "3G": 3e9, "2Gi": 2 << 30, "1Ti": 1 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "Ki", "-1", "+1", "1 Ki", " 1", "1ki", "1K", "1B", "1KiB", "100m", "1.5", "0.1Ki", "1_000", "0x10", "1/2", "1e", "1e-3",
		"9223372036854775808", "9Ei", "1e99", "NaN", "9000000Ti",
	} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestSizeJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"1"`: `"1"`, `1`: `"1"`, `"1024"`: `"1Ki"`, `"1Mi"`: `"1Mi"`, `"1500"`: `"1500"`, `0`: `"0"`, `"1.5Gi"`: `"1536Mi"`,
	} {
		var s Size
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		b, err := json.Marshal(s)
		if err != nil || string(b) != want {
			t.Errorf("%s: became %s, %v, want %s", text, b, err, want)
		}
	}
	for _, text := range []string{`"x"`, `null`, `true`, `{}`, `[1]`, `-1`, `1.5`} {
		var s Size
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s is taken for %d", text, s)
		}
	}
}
