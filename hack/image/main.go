// Command image builds a container image without a container engine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"dbbench.dev/operator/hack/image/oci"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	image := oci.Image{}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	output := flags.String("output", "", "tarball to write")
	flags.StringVar(&image.Tag, "tag", "", "name and tag of the image")
	flags.StringVar(&image.Architecture, "arch", runtime.GOARCH, "architecture of its programs")
	flags.StringVar(&image.User, "user", "65532:65532", "user and group that it runs as")
	flags.Func("entrypoint", "program that it runs", func(v string) error {
		image.Entrypoint = strings.Fields(v)
		return nil
	})
	flags.Func("layer", "tarball below the files; may be repeated", func(v string) error {
		image.Layers = append(image.Layers, v)
		return nil
	})
	flags.Func("file", "SOURCE=PATH: a file to put in; may be repeated", func(v string) error {
		source, path, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("write SOURCE=PATH")
		}
		file, err := oci.ReadFile(source, path)
		if err != nil {
			return err
		}
		image.Files = append(image.Files, file)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *output == "" || image.Tag == "" {
		return errors.New("--output and --tag are required")
	}
	return image.Write(*output)
}
