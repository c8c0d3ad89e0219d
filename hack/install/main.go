// Command install renders what installs the operator: the manifests of config/default
// as one file, and the Helm chart as an archive.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// devImage is the image that config/manager names.
const devImage = "dbbench.dev/operator:dev"

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "top folder of the project")
	image := flags.String("image", devImage, "image of the operator, NAME:TAG or NAME@DIGEST")
	version := flags.String("version", "", "version of the chart (default that of Chart.yaml)")
	output := flags.String("output", "", "folder for install.yaml and the chart's archive (required)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *output == "" {
		return errors.New("--output is required: the folder for install.yaml and the chart's archive")
	}
	if err := os.MkdirAll(*output, 0o755); err != nil {
		return err
	}
	manifests, err := kustomize(filepath.Join(*root, "config/default"))
	if err != nil {
		return err
	}
	// The image stands in the manager's flags too, where no transformer looks.
	manifests = bytes.ReplaceAll(manifests, []byte(devImage), []byte(*image))
	path := filepath.Join(*output, "install.yaml")
	if err := os.WriteFile(path, manifests, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(stdout, path)
	archive, err := saveChart(filepath.Join(*root, "charts/dbbench"), *image, *version, *output)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, archive)
	return nil
}

// kustomize builds a folder as `kubectl apply -k` does.
func kustomize(dir string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}

// saveChart writes the chart with another image as its default.
func saveChart(dir, image, version, output string) (string, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	if version != "" {
		c.Metadata.Version = version
	}
	if err := setImage(c, image); err != nil {
		return "", err
	}
	return chartutil.Save(c, output)
}

// setImage changes the values' text, so that their comments stay.
func setImage(c *chart.Chart, image string) error {
	repository, digest, _ := strings.Cut(image, "@")
	name := repository[strings.LastIndex(repository, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	repository = strings.TrimSuffix(repository, ":"+tag)
	if tag == "" && digest == "" {
		return fmt.Errorf("the image %q has neither a tag nor a digest", image)
	}
	values, _ := c.Values["image"].(map[string]any)
	for _, f := range c.Raw {
		if f.Name != chartutil.ValuesfileName {
			continue
		}
		for field, value := range map[string]string{"repository": repository, "tag": tag, "digest": digest} {
			before := fmt.Sprintf("\n  %s: %v\n", field, values[field])
			if values[field] == "" {
				before = fmt.Sprintf("\n  %s: \"\"\n", field)
			}
			if !bytes.Contains(f.Data, []byte(before)) {
				return fmt.Errorf("values.yaml has no line %q", strings.TrimSpace(before))
			}
			f.Data = bytes.Replace(f.Data, []byte(before), fmt.Appendf(nil, "\n  %s: %q\n", field, value), 1)
		}
	}
	return nil
}
