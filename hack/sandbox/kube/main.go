// Command kube is a whole Kubernetes in one binary: it is the component that its
// own name or its first argument says.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// The order of CoreDNS's plugins is fixed when it is built, not by its Corefile.
func init() {
	dnsserver.Directives = []string{"bind", "errors", "ready", "kubernetes", "template"}
}

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	args := slices.Clone(os.Args)
	name := filepath.Base(args[0])
	if name == "kube" && len(args) > 1 {
		args = args[1:]
		name = args[0]
	}
	os.Args = args
	switch name {
	case "etcd":
		etcdmain.Main(args)
		return
	case "coredns":
		coremain.Run()
		return
	}
	command, ok := components[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: kube etcd|coredns|"+strings.Join(names(), "|"), "[ARGUMENT …]")
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
