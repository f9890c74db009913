package inspect

import (
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// shortNames are those of kubectl.
var shortNames = map[string]string{"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}

// kindOf returns a kind by the names that kubectl takes: deployment, deployments, deployment.apps and deploy.
func kindOf(kinds workload.Kinds, name string) (workload.Kind, bool) {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if long, short := shortNames[name]; short {
		name = long
	}
	for _, kind := range kinds {
		if plural, _, _ := strings.Cut(kind.Resource, "."); kind.Name == name || plural == name {
			return kind, true
		}
	}
	return workload.Kind{}, false
}
