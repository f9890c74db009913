package inspect

import (
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestKindsHaveTheNamesOfKubectl(t *testing.T) {
	for name, want := range map[string]string{
		"deployment": "deployment", "deployments": "deployment", "Deployment": "deployment", "deployment.apps": "deployment", "deploy": "deployment",
		"sts": "statefulset", "daemonsets": "daemonset", "cj": "cronjob", "pod": "", "": "",
	} {
		if got, known := kindOf(workload.BuiltIn(), name); got.Name != want || known != (want != "") {
			t.Errorf("%q is %q, want %q", name, got.Name, want)
		}
	}
}
