// Command image builds a container image without a container engine: for one
// architecture as a tarball, for several as an OCI layout or straight into a registry.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"dbbench.dev/operator/hack/image/oci"
	"dbbench.dev/operator/hack/image/publish"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	image         oci.Image // of any architecture, without its files
	architectures []string
	files         [][2]string // source and path
	output        string
	layout        string
	push          bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.output, "output", "", "tarball to write, for one architecture; docker and containerd load it")
	flags.StringVar(&o.layout, "layout", "", "folder to write as an OCI layout, for all architectures")
	flags.BoolVar(&o.push, "push", false, "upload all architectures to the registry that the tag names, with the credentials of docker login")
	flags.StringVar(&o.image.Tag, "tag", "", "name and tag of the image (required)")
	arch := flags.String("arch", runtime.GOARCH, "architectures of its programs, separated by commas")
	flags.StringVar(&o.image.User, "user", "65532:65532", "user and group that it runs as")
	flags.Func("entrypoint", "program that it runs", func(v string) error {
		o.image.Entrypoint = strings.Fields(v)
		return nil
	})
	flags.Func("layer", "tarball below the files; may be repeated", func(v string) error {
		o.image.Layers = append(o.image.Layers, v)
		return nil
	})
	flags.Func("file", "SOURCE=PATH: a file to put in, {arch} in SOURCE standing for the architecture; may be repeated", func(v string) error {
		source, path, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("write SOURCE=PATH")
		}
		o.files = append(o.files, [2]string{source, path})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.architectures = strings.Split(*arch, ",")
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.image.Tag == "" || (o.output == "" && o.layout == "" && !o.push):
		return o, errors.New("--tag is required, and one of --output, --layout and --push")
	case o.output != "" && len(o.architectures) > 1:
		return o, errors.New("--output takes one architecture; use --layout for several")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var images []oci.Image
	for _, arch := range o.architectures {
		image := o.image
		image.Architecture = arch
		for _, f := range o.files {
			file, err := oci.ReadFile(strings.ReplaceAll(f[0], "{arch}", arch), f[1])
			if err != nil {
				return err
			}
			image.Files = append(image.Files, file)
		}
		images = append(images, image)
	}
	if o.output != "" {
		if err := images[0].Write(o.output); err != nil {
			return err
		}
	}
	if o.layout == "" && !o.push {
		return nil
	}
	return writeIndex(ctx, o, images, stdout)
}

func writeIndex(ctx context.Context, o options, images []oci.Image, stdout io.Writer) error {
	index, err := publish.NewIndex(images)
	if err != nil {
		return err
	}
	if o.layout != "" {
		if err := index.WriteLayout(o.layout, o.image.Tag); err != nil {
			return err
		}
	}
	if o.push {
		digest, err := index.Push(ctx, o.image.Tag)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s@%s\n", o.image.Tag, digest)
	}
	return nil
}
