// Package crd holds the generated CustomResourceDefinition, for programs that need
// its schema without a cluster.
package crd

import _ "embed"

// DBBenchmarks is the CustomResourceDefinition of DBBenchmark as YAML.
//
//go:embed bases/dbbench.dev_dbbenchmarks.yaml
var DBBenchmarks []byte
