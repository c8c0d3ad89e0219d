package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../charts/dbbench"

// object is any Kubernetes object.
type object = map[string]any

// TestChartIsConfig holds the chart to what kustomize gives, object by object.
func TestChartIsConfig(t *testing.T) {
	for _, tc := range []struct {
		config, namespace string
		values            map[string]any
		besides           []string // what the chart leaves to others
	}{
		{"default", "dbbench-system", map[string]any{"crds": map[string]any{"keep": false}}, []string{"Namespace/dbbench-system"}},
		{"namespaced", "default", map[string]any{"crds": map[string]any{"install": false}, "scope": "Namespaced"}, nil},
	} {
		t.Run(tc.config, func(t *testing.T) {
			text, err := kustomize("../../config/" + tc.config)
			if err != nil {
				t.Fatal(err)
			}
			want := byName(t, string(text))
			for _, name := range tc.besides {
				if want[name] == nil {
					t.Errorf("config/%s has no %s", tc.config, name)
				}
				delete(want, name)
			}
			if diff := cmp.Diff(want, byName(t, render(t, chartDir, tc.namespace, tc.values))); diff != "" {
				t.Errorf("config/%s (-) and the chart (+) differ:\n%s", tc.config, diff)
			}
		})
	}
}

// TestNamespacedIsOfOneNamespace: nothing of it belongs to the whole cluster.
func TestNamespacedIsOfOneNamespace(t *testing.T) {
	for name, o := range byName(t, render(t, chartDir, "team", map[string]any{"crds": map[string]any{"install": false}, "scope": "Namespaced"})) {
		if o["metadata"].(object)["namespace"] != "team" {
			t.Errorf("%s is not in the release's namespace", name)
		}
	}
}

// TestValues renders every value once with another content.
func TestValues(t *testing.T) {
	text := render(t, chartDir, "team", map[string]any{
		"image":             map[string]any{"repository": "example.com/op", "digest": "sha256:" + strings.Repeat("a", 64), "pullPolicy": "Always"},
		"imagePullSecrets":  []any{map[string]any{"name": "pull"}},
		"runnerImage":       "example.com/runner:2",
		"replicas":          2,
		"resources":         map[string]any{"limits": map[string]any{"cpu": "3"}},
		"args":              []any{"--zap-log-level=debug"},
		"metrics":           map[string]any{"enabled": false},
		"networkPolicy":     map[string]any{"apiServerPorts": []any{1234}},
		"podLabels":         map[string]any{"team": "blue"},
		"podAnnotations":    map[string]any{"note": "yes"},
		"nodeSelector":      map[string]any{"disk": "ssd"},
		"tolerations":       []any{map[string]any{"operator": "Exists"}},
		"affinity":          map[string]any{"nodeAffinity": map[string]any{}},
		"priorityClassName": "high",
	})
	golden := "testdata/values.yaml"
	text = text[strings.Index(text, "\n---\n# dbbench/templates/deployment.yaml")+1:]
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (UPDATE_GOLDEN=1 writes it):\n%s", golden, diff)
	}
}

func TestKeptCRD(t *testing.T) {
	crd := byName(t, render(t, chartDir, "team", nil))["CustomResourceDefinition/dbbenchmarks.dbbench.dev"]
	if got := crd["metadata"].(object)["annotations"].(object)["helm.sh/resource-policy"]; got != "keep" {
		t.Errorf("the CRD goes with the release: %v", got)
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for says, values := range map[string]map[string]any{
		"replica'":          {"replica": 2},
		"/scope":            {"scope": "Everything"},
		"/image/digest":     {"image": map[string]any{"digest": "sha256:12"}},
		"/args/0":           {"args": []any{"zap"}},
		"/replicas":         {"replicas": "two"},
		"/networkPolicy":    {"networkPolicy": map[string]any{"apiServerPorts": []any{0}}},
		"/image/pullPolicy": {"image": map[string]any{"pullPolicy": "Sometimes"}},
	} {
		if _, err := tryRender(chartDir, "team", values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", values, err, says)
		}
	}
}

// TestSchemaIsComplete: each value that the schema knows has a line that explains it.
func TestSchemaIsComplete(t *testing.T) {
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Properties map[string]any }
	if err := yaml.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range schema.Properties {
		if _, ok := c.Values[name]; !ok && name != "global" {
			t.Errorf("values.yaml does not have %s", name)
		}
	}
}

func TestLint(t *testing.T) {
	for _, m := range lint.RunAll(chartDir, nil, "team").Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

// TestRun: both products name the image that was asked for, and nothing else.
func TestRun(t *testing.T) {
	const image = "registry.example.com:5000/team/operator:v1.2.3"
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run([]string{"--image", image, "--version", "1.2.3", "--output", dir}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "dbbench-1.2.3.tgz")
	if got := out.String(); got != filepath.Join(dir, "install.yaml")+"\n"+archive+"\n" {
		t.Errorf("printed: %s", got)
	}
	chart := byName(t, render(t, archive, "dbbench-system", map[string]any{"crds": map[string]any{"keep": false}}))
	manifests := byName(t, string(text))
	delete(manifests, "Namespace/dbbench-system")
	if diff := cmp.Diff(manifests, chart); diff != "" {
		t.Errorf("install.yaml (-) and the chart (+) differ:\n%s", diff)
	}
	if n := strings.Count(string(text), image); n != 2 {
		t.Errorf("the image is named %d times, want 2", n)
	}
	if strings.Contains(string(text), devImage) {
		t.Errorf("%s is left", devImage)
	}
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	for says, args := range map[string][]string{
		"--output is required":           nil,
		"unexpected argument":            {"more"},
		"neither a tag nor a digest":     {"--output", t.TempDir(), "--image", "example.com/x"},
		"no such file":                   {"--output", t.TempDir(), "--root", "/nowhere"},
		`version "one" is invalid`:       {"--output", t.TempDir(), "--version", "one"},
		"flag provided but not defined:": {"--input"},
	} {
		if err := run(args, io.Discard, io.Discard); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(says)) {
			t.Errorf("%v: %v, want %q", args, err, says)
		}
	}
}

func render(t *testing.T, path, namespace string, values map[string]any) string {
	t.Helper()
	text, err := tryRender(path, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tryRender gives what `helm install dbbench` would apply.
func tryRender(path, namespace string, values map[string]any) (string, error) {
	c, err := loader.Load(path)
	if err != nil {
		return "", err
	}
	options := common.ReleaseOptions{Name: "dbbench", Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		text.WriteString("---\n# " + name + "\n" + strings.TrimLeft(files[name], "\n"))
	}
	return text.String(), nil
}

// byName splits a stream of objects, and drops what only one of the two ways has: the
// labels by which Helm knows its own, and the annotation with which a changed image of
// the same tag is rolled out.
func byName(t *testing.T, text string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v\n%s", err, part)
		}
		if o == nil {
			continue
		}
		prune(o)
		name := o["kind"].(string) + "/" + o["metadata"].(object)["name"].(string)
		if all[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		all[name] = o
	}
	return all
}

func prune(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			prune(e)
		}
	case object:
		for _, key := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart", "dbbench.dev/image-digest"} {
			delete(v, key)
		}
		for key, e := range v {
			prune(e)
			if m, ok := e.(object); ok && len(m) == 0 && (key == "labels" || key == "annotations") {
				delete(v, key)
			}
		}
	}
}
