package plan

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"dbbench.dev/operator/api/v1alpha1"
)

func TestServerKey(t *testing.T) {
	key := func(namespace, host string, port int32) string {
		return ServerKey(namespace, v1alpha1.Target{Host: host, Port: port})
	}
	want := key("db", "mariadb", 3306)
	for _, host := range []string{"mariadb.db", "mariadb.db.svc", "mariadb.db.svc.cluster.local", "MariaDB.DB.svc", "mariadb.db.svc.cluster.local."} {
		if got := key("elsewhere", host, 0); got != want {
			t.Errorf("%s is another server", host)
		}
	}
	if got := ServerKey("db", v1alpha1.Target{ServiceRef: &v1alpha1.ServiceReference{Name: "mariadb"}}); got != want {
		t.Error("the Service is another server")
	}
	for what, got := range map[string]string{
		"port": key("db", "mariadb", 3307), "namespace": key("other", "mariadb", 3306), "name": key("db", "mysql", 3306), "domain": key("db", "mariadb.example.com", 3306),
	} {
		if got == want {
			t.Errorf("another %s is the same server", what)
		}
	}
	if key("a", "::1", 3306) != key("b", "0:0:0:0:0:0:0:1", 3306) {
		t.Error("the spellings of an IPv6 address are different servers")
	}
	if errs := validation.IsValidLabelValue(want); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestTargetsAreDatabases(t *testing.T) {
	const secret = ", credentialsSecretRef: {name: s}}"
	for text, path := range map[string]string{
		"[{name: a, host: x" + secret + ", {name: b, host: y" + secret + "]":                               "",
		"[{name: a, host: x, database: one" + secret + ", {name: b, host: x, database: two" + secret + "]": "",
		"[{name: a, host: x, port: 1" + secret + ", {name: b, host: x, port: 2" + secret + "]":             "",
		"[{name: a, host: x.db.svc" + secret + ", {name: b, host: X.db, port: 3306" + secret + "]":         "spec.targets[1].database",
		"[{name: a, host: x" + secret + ", {name: b, serviceRef: {name: x}" + secret + "]":                 "spec.targets[1].database",
	} {
		_, err := Expand(parse(t, "targets: "+text))
		var fault *SpecError
		if path == "" && err != nil || path != "" && (!errors.As(err, &fault) || fault.Path != path) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
