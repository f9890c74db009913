package events

import (
	"errors"
	"fmt"
	"strings"
)

// Workload names an object that a change affects: one whose pods are rolled, or an ExternalSecret that is synced.
type Workload struct {
	// Kind is the lower-case singular: "deployment", "statefulset", "daemonset", "cronjob", "job", "rollout", "externalsecret", or the name of a kind
	// that comes from configuration.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// APIVersion and Resource are set for a kind that comes from configuration, which readers cannot know: "monitoring.coreos.com/v1" and the
	// plural "prometheuses". They are empty for the kinds above.
	APIVersion string `json:"apiVersion,omitempty"`
	Resource   string `json:"resource,omitempty"`
}

// workloadPaths has the path of each kind of workload in the Kubernetes API that does not come from configuration.
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

// extensions returns the attributes of an event about the workload.
func (w Workload) extensions(resourceVersion, cause string) map[string]string {
	return map[string]string{
		extNamespace: w.Namespace, extName: w.Name, extWorkloadKind: w.Kind, extResourceVersion: resourceVersion, extCausationID: cause,
	}
}

// isNamedBy checks that the attributes of an event name the workload that its data has. Only the data has the place in the API of a configured kind.
func (w Workload) isNamedBy(v envelope) error {
	if w.UID != v.uid || w.Kind != v.extensions[extWorkloadKind] || w.Namespace != v.extensions[extNamespace] || w.Name != v.extensions[extName] {
		return rejectf(ReasonMalformed, "the attributes and the data name different objects")
	}
	return nil
}

func (w Workload) validate() error {
	if !isSubdomain(w.Namespace) || !isSubdomain(w.Name) {
		return errors.New("the namespace or the name of the workload is not a Kubernetes name")
	}
	return nil
}

// selfLink returns the "subject" attribute of the workload's outcomes: its path in the Kubernetes API, as
// `kubectl get --raw` takes it. It is empty for a workload of an unknown kind without a valid APIVersion and Resource.
func (w Workload) selfLink() string {
	path, known := workloadPaths[w.Kind]
	switch named := w.APIVersion != "" || w.Resource != ""; {
	case known == named:
		return ""
	case named && ValidateWorkloadKind(w.Kind, w.APIVersion, w.Resource) != nil:
		return ""
	case named:
		path.group, path.plural = w.APIVersion, w.Resource
	}
	return "/apis/" + path.group + "/namespaces/" + w.Namespace + "/" + path.plural + "/" + w.Name
}

// ValidateWorkloadKind checks the names that a kind of workload from the configuration has in outcomes and their subjects. The error begins with
// the name of the field of Workload, as in JSON.
func ValidateWorkloadKind(kind, apiVersion, resource string) error {
	group, version, _ := strings.Cut(apiVersion, "/")
	_, known := workloadPaths[kind]
	switch {
	case known:
		return fmt.Errorf("kind: %q is another kind of workload, want a name of its own", kind)
	case !isWord(kind):
		return fmt.Errorf("kind: %q, want 1 to %d lower-case letters and digits", kind, maxLabel)
	case !isSubdomain(group) || !strings.Contains(group, ".") || !isWord(version):
		return fmt.Errorf("apiVersion: %q, want the group and the version of a custom resource, such as example.org/v1", apiVersion)
	case !isWord(resource):
		return fmt.Errorf("resource: %q, want the plural in the API, such as widgets", resource)
	}
	return nil
}
