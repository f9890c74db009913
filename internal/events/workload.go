package events

// Workload names an object that a change affects: one whose pods are rolled, or an ExternalSecret that is synced.
type Workload struct {
	// Kind is the lower-case singular: "deployment", "statefulset", "daemonset", "cronjob", "job", "rollout", "externalsecret".
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// workloadPaths has the path of each kind of workload in the Kubernetes API.
var workloadPaths = map[string]struct{ group, plural string }{
	"deployment":     {"apps/v1", "deployments"},
	"statefulset":    {"apps/v1", "statefulsets"},
	"daemonset":      {"apps/v1", "daemonsets"},
	"cronjob":        {"batch/v1", "cronjobs"},
	"job":            {"batch/v1", "jobs"},
	"rollout":        {"argoproj.io/v1alpha1", "rollouts"},
	"externalsecret": {"external-secrets.io/v1", "externalsecrets"},
}

// String returns the form that people and kubectl use, without the namespace: "deployment/web".
func (w Workload) String() string { return w.Kind + "/" + w.Name }

// selfLink returns the "subject" attribute of the workload's outcomes: its path in the Kubernetes API, as
// `kubectl get --raw` takes it. It is empty for an unknown kind.
func (w Workload) selfLink() string {
	path, known := workloadPaths[w.Kind]
	if !known {
		return ""
	}
	return "/apis/" + path.group + "/namespaces/" + w.Namespace + "/" + path.plural + "/" + w.Name
}
