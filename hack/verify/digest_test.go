package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDifferenceSeesEveryKindOfChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := func() map[string][32]byte {
		t.Helper()
		all, err := digests([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, name := range []string{"same", "changed", "gone"} {
		write(name, "before")
	}
	before := snapshot()
	write("changed", "after")
	write("new", "after")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "changed"), filepath.Join(dir, "gone"), filepath.Join(dir, "new")}
	if got := difference(before, snapshot()); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
