package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// shortNames are kubectl's short names of kinds.
var shortNames = map[string]string{"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}

// lettersAndDigits are the valid characters in the name of a kind.
const lettersAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

// WorkloadNamed parses the name of a workload in outcomes, such as "deployment/web", without namespace. It accepts unknown kinds, because they
// may come from --targets-config of the actuator, which is not known here.
func WorkloadNamed(text string) (events.Workload, error) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job())
	named, name, _ := strings.Cut(text, "/")
	if kind, known := kindOf(kinds, named); known {
		named = kind.Name
	}
	isSource := slices.Contains(events.SourceKinds(), events.Kind(named))
	if named == "" || strings.Trim(named, lettersAndDigits) != "" || isSource || name == "" || strings.Contains(name, "/") {
		return events.Workload{}, fmt.Errorf("%q, want <kind>/<name> such as deployment/web, with a kind of %s, externalsecret, or of "+
			"--targets-config", text, strings.Join(kinds.Names(), ", "))
	}
	return events.Workload{Kind: named, Name: name}, nil
}

// kindOf returns a kind by one of the names that kubectl accepts: deployment, deployments, deployment.apps, deployment.v1.apps and deploy.
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
