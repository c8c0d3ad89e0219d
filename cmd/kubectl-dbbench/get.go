package main

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// resourceName is how the API calls DBBenchmarks.
const resourceName = "dbbenchmarks.dbbench.dev"

// asTable asks the API for its own table, with the columns of kubectl get.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

type getOptions struct {
	*genericclioptions.PrintFlags
	allNamespaces bool
	selector      string
	noHeaders     bool
}

func newGet(e *env) *cobra.Command {
	o := getOptions{PrintFlags: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "List benchmarks",
		Long:  "List benchmarks, as kubectl get dbb does.",
		Example: `  kubectl dbbench get
  kubectl dbbench get nightly -o wide
  kubectl dbbench get -A -l team=db`,
		ValidArgsFunction: e.completeNames(1),
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(e, args) },
	}
	o.AddFlags(cmd)
	cmd.Flag("output").Usage = fmt.Sprintf("Output format. One of: %v.", append(o.AllowedFormats(), "wide"))
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the benchmarks of all namespaces.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Selector (label query) to filter on, such as -l key=value.")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Leave the headers out.")
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(append(o.AllowedFormats(), "wide"), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *getOptions) run(e *env, names []string) error {
	namespace, _, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if len(names) > 0 && (o.allNamespaces || o.selector != "") {
		return usageError("names do not go with -A or -l")
	}
	b := resource.NewBuilder(e.config).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(o.allNamespaces).
		LabelSelectorParam(o.selector).
		ResourceTypeOrNameArgs(true, append([]string{resourceName}, names...)...).
		RequestChunksOf(500).ContinueOnError()
	if *o.OutputFormat == "" || *o.OutputFormat == "wide" {
		return o.printTable(e, b, namespace)
	}
	return o.print(e, b.Flatten(), len(names) == 1)
}

func (o *getOptions) printTable(e *env, b *resource.Builder, namespace string) error {
	infos, err := b.TransformRequests(func(r *rest.Request) { r.SetHeader("Accept", asTable) }).Do().Infos()
	if err != nil && len(infos) == 0 {
		return err
	}
	all := &metav1.Table{}
	for _, info := range infos {
		table, err := toTable(info.Object)
		if err != nil {
			return err
		}
		all.ColumnDefinitions = table.ColumnDefinitions
		all.Rows = append(all.Rows, table.Rows...)
	}
	if len(all.Rows) == 0 {
		where := " in " + namespace + " namespace"
		if o.allNamespaces {
			where = ""
		}
		fmt.Fprintf(e.ErrOut, "No benchmarks found%s.\n", where)
		return err
	}
	p := printers.NewTablePrinter(printers.PrintOptions{
		Wide: *o.OutputFormat == "wide", WithNamespace: o.allNamespaces, NoHeaders: o.noHeaders,
	})
	if err := p.PrintObj(all, e.Out); err != nil {
		return err
	}
	return err
}

// toTable reads what the API has sent as a table. The rows' objects are read too: the
// printer takes the namespace from them.
func toTable(object runtime.Object) (*metav1.Table, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Table" {
		return nil, fmt.Errorf("the API gives no table of %s, but %T", resourceName, object)
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, table); err != nil {
		return nil, err
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if len(row.Object.Raw) == 0 {
			continue
		}
		converted, err := runtime.Decode(unstructured.UnstructuredJSONScheme, row.Object.Raw)
		if err != nil {
			return nil, err
		}
		row.Object.Object = converted
	}
	return table, nil
}

// print writes the objects themselves: one that was asked for by name alone, else a
// list of them.
func (o *getOptions) print(e *env, b *resource.Builder, single bool) error {
	printer, err := o.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return usageError("%w", err)
	}
	if err != nil {
		return err
	}
	infos, err := b.Do().Infos()
	if err != nil && len(infos) == 0 {
		return err
	}
	if single && len(infos) == 1 {
		return printer.PrintObj(infos[0].Object, e.Out)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, info := range infos {
		if u, ok := info.Object.(*unstructured.Unstructured); ok {
			list.Items = append(list.Items, *u)
		}
	}
	if *o.OutputFormat == "name" {
		for i := range list.Items {
			if err := printer.PrintObj(&list.Items[i], e.Out); err != nil {
				return err
			}
		}
		return err
	}
	if perr := printer.PrintObj(list, e.Out); perr != nil {
		return perr
	}
	return err
}
