package inspect

import (
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestKindsHaveTheNamesOfKubectl(t *testing.T) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout())
	for name, want := range map[string]string{
		"deployment": "deployment", "deployments": "deployment", "Deployment": "deployment", "deployment.apps": "deployment", "deploy": "deployment",
		"sts": "statefulset", "daemonsets": "daemonset", "cj": "cronjob", "pod": "", "": "",
		"rollout": "rollout", "rollouts": "rollout", "rollouts.argoproj.io": "rollout", "rollout.argoproj.io": "rollout",
		"deployments.v1.apps": "deployment", "rollouts.argo": "rollout", "deployments.example.com": "", "rollouts.apps": "",
	} {
		if got, known := kindOf(kinds, name); got.Name != want || known != (want != "") {
			t.Errorf("%q is %q, want %q", name, got.Name, want)
		}
	}
}
