package controllers

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"dbbench.dev/operator/api/v1alpha1"
)

// testConfig leads to a kube-apiserver and an etcd that all tests of the package share.
// There is no Job controller, no garbage collector and no node: see kubelet.
var testConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS must name the directory of kube-apiserver and etcd: run make test-envtest")
		return 1
	}
	if os.Getenv("TEST_LOG") != "" {
		ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	} else {
		ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start kube-apiserver and etcd:", err)
		return 1
	}
	config.QPS, config.Burst = -1, -1
	testConfig = config
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop kube-apiserver and etcd:", err)
		return 1
	}
	return code
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1alpha1.AddToScheme(scheme)
	return scheme
}

// background is a context for what must be done after the test's own has ended.
var background = context.Background()
