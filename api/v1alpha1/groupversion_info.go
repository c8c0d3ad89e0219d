// Package v1alpha1 holds the dbbench.dev/v1alpha1 API: a DBBenchmark describes
// targets, a workload and a sweep; its status holds the results.
// +kubebuilder:object:generate=true
// +groupName=dbbench.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "dbbench.dev", Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the types of this package.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &DBBenchmark{}, &DBBenchmarkList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
