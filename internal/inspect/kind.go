package inspect

import (
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// shortNames are those of kubectl.
var shortNames = map[string]string{"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}

// kindOf returns a kind by the names that kubectl takes: deployment, deployments, deployment.apps, deployment.v1.apps and deploy.
func kindOf(kinds workload.Kinds, name string) (workload.Kind, bool) {
	name, of, _ := strings.Cut(strings.ToLower(name), ".")
	if long, short := shortNames[name]; short {
		name = long
	}
	for _, kind := range kinds {
		plural, _, _ := strings.Cut(kind.Resource, ".")
		group, _, _ := strings.Cut(kind.APIVersion, "/")
		if (kind.Name == name || plural == name) && (strings.HasPrefix(group, of) || strings.HasSuffix(of, "."+group)) {
			return kind, true
		}
	}
	return workload.Kind{}, false
}
