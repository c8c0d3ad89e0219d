package sbom

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// TestOf takes the program of this module, whose modules are known.
func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	if out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	programs := []Program{{Path: "/a", Data: data}, {Path: "/b", Data: data}}
	text, err := Of("example.com/x:1", programs)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Of("example.com/x:1", programs); !bytes.Equal(text, again) {
		t.Error("the same programs gave two documents")
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, c := range *bom.Components {
		url, _, _ := strings.Cut(c.PackageURL, "@v")
		found[c.Name+" "+url]++
	}
	for _, want := range []string{"/a ", "/b ", "github.com/CycloneDX/cyclonedx-go pkg:golang/github.com/CycloneDX/cyclonedx-go"} {
		if found[want] != 1 {
			t.Errorf("%q is there %d times in %v", want, found[want], found)
		}
	}
	for _, d := range *bom.Dependencies {
		if len(*d.Dependencies) < 2 {
			t.Errorf("%s depends on %v", d.Ref, *d.Dependencies)
		}
	}
	if !strings.Contains(string(text), `"pkg:golang/std@1.`) {
		t.Error("Go's own library is missing")
	}
}

func TestOfRefusesWhatIsNoProgram(t *testing.T) {
	if _, err := Of("x", []Program{{Path: "/script", Data: []byte("#!/bin/sh")}}); err == nil || !strings.Contains(err.Error(), "/script") {
		t.Errorf("%v does not name the file", err)
	}
}
