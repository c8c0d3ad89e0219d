package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

// files are the flags -f, -k and -R.
type files struct {
	names     []string
	kustomize string
	recursive bool
}

func (f *files) addFlags(flags *pflag.FlagSet) {
	(&genericclioptions.FileNameFlags{
		Usage:     "The files, directories or URLs with the benchmarks; - is standard input.",
		Filenames: &f.names, Kustomize: &f.kustomize, Recursive: &f.recursive,
	}).AddFlags(flags)
}

func (f *files) check() error {
	if len(f.names) == 0 && f.kustomize == "" {
		return usageError("name a file with -f, or a kustomization with -k")
	}
	return nil
}

// from puts the files into a builder. Standard input is read through the streams of the
// command, once however often it is named.
func (f *files) from(e *env, b *resource.Builder, enforceNamespace bool) *resource.Builder {
	options := resource.FilenameOptions{Kustomize: f.kustomize, Recursive: f.recursive}
	for _, name := range f.names {
		if name != "-" {
			options.Filenames = append(options.Filenames, name)
		}
	}
	if slices.Contains(f.names, "-") {
		b.Stream(e.In, "standard input")
	}
	return b.FilenameParam(enforceNamespace, &options)
}

// planned is a benchmark of a file, and its runs.
type planned struct {
	source    string
	benchmark *v1alpha1.DBBenchmark
	runs      []plan.Run
}

func (p planned) name() string { return p.benchmark.Name }

// read reads the benchmarks of the files without a cluster, and says all that is wrong
// with them. Objects of other kinds are passed over.
func (f *files) read(e *env) ([]planned, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	infos, err := f.from(e, resource.NewLocalBuilder().Unstructured(), false).ContinueOnError().Flatten().Do().Infos()
	var all []planned
	faults := []error{err}
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok || !isBenchmark(object.GroupVersionKind()) {
			continue
		}
		p, err := admit(info.Source, object)
		faults = append(faults, err)
		all = append(all, p)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there is no DBBenchmark in the files")
	}
	return all, nil
}

// isBenchmark reports whether an object is a DBBenchmark, of whatever version.
func isBenchmark(kind schema.GroupVersionKind) bool {
	return kind.Group == v1alpha1.GroupVersion.Group && kind.Kind == "DBBenchmark"
}

// admit does with an object what an API server and the controller's planner would do.
func admit(source string, object *unstructured.Unstructured) (planned, error) {
	p := planned{source: source, benchmark: &v1alpha1.DBBenchmark{}}
	at := func(err error) error { return fmt.Errorf("%s: %s: %w", source, object.GetName(), err) }
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, at(fmt.Errorf(format, args...))) }
	if v := object.GroupVersionKind().Version; v != v1alpha1.GroupVersion.Version {
		add("apiVersion: this plugin reads %s, not %s", v1alpha1.GroupVersion, object.GetAPIVersion())
	}
	for _, field := range slices.Sorted(maps.Keys(object.Object)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, field) {
			add("%s: unknown field; what is measured stands under spec", field)
		}
	}
	for _, fault := range validation.IsDNS1123Subdomain(object.GetName()) {
		add("metadata.name: %s", fault)
	}
	spec, ok, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil || !ok {
		add("spec: it must be there, and be a map")
		return p, errors.Join(faults...)
	}
	if err := plan.Admit(spec); err != nil {
		found := split(err)
		slices.SortFunc(found, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) }) // a validator has no order
		for _, fault := range found {
			faults = append(faults, at(fault))
		}
	}
	if len(faults) > 0 {
		return p, errors.Join(faults...)
	}
	object.Object["spec"] = spec
	delete(object.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, p.benchmark); err != nil {
		return p, at(err)
	}
	p.runs, err = plan.Expand(&p.benchmark.Spec)
	if err != nil {
		return p, at(err)
	}
	return p, nil
}

// split takes apart what errors.Join has joined.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
