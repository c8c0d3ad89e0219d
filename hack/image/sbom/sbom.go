// Package sbom lists what Go programs are made of, by what the compiler has written
// into them.
package sbom

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	packageurl "github.com/package-url/packageurl-go"
)

// MediaType is that of the document that Of returns.
const MediaType = "application/vnd.cyclonedx+json"

// Program is an executable that Go has built.
type Program struct {
	Path string
	Data []byte
}

// Of returns a CycloneDX document in JSON about an image and its programs: the modules
// and the version of Go that each is linked from. It holds no time and no random
// number, so that the same programs give the same document.
func Of(image string, programs []Program) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: image, Type: cyclonedx.ComponentTypeContainer, Name: image,
	}}
	modules := map[string]cyclonedx.Component{}
	var applications []cyclonedx.Component
	parts := []string{}
	var dependencies []cyclonedx.Dependency
	for _, p := range programs {
		info, err := buildinfo.Read(bytes.NewReader(p.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		applications = append(applications, application(p.Path, info))
		parts = append(parts, p.Path)
		var uses []string
		for _, m := range linked(info) {
			c := library(m)
			modules[c.BOMRef] = c
			uses = append(uses, c.BOMRef)
		}
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: p.Path, Dependencies: &uses})
	}
	dependencies = append([]cyclonedx.Dependency{{Ref: image, Dependencies: &parts}}, dependencies...)
	components := applications
	for _, c := range modules {
		components = append(components, c)
	}
	slices.SortFunc(components[len(applications):], func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &components, &dependencies
	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// application describes a program; its properties are the settings of its build.
func application(path string, info *debug.BuildInfo) cyclonedx.Component {
	settings := []cyclonedx.Property{{Name: "go.package", Value: info.Path}}
	for _, s := range info.Settings {
		settings = append(settings, cyclonedx.Property{Name: "go." + strings.TrimPrefix(s.Key, "-"), Value: s.Value})
	}
	return cyclonedx.Component{
		BOMRef: path, Type: cyclonedx.ComponentTypeApplication, Name: path, Version: info.Main.Version, Properties: &settings,
	}
}

// linked are the modules of a program, with Go's own library as one.
func linked(info *debug.BuildInfo) []debug.Module {
	all := []debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, *m)
	}
	return all
}

func library(m debug.Module) cyclonedx.Component {
	namespace, name := "", m.Path
	if i := strings.LastIndex(m.Path, "/"); i >= 0 {
		namespace, name = m.Path[:i], m.Path[i+1:]
	}
	url := packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, m.Version, nil, "").ToString()
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url}
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}
