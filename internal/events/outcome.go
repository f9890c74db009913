package events

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Outcome is the event about the result of one or more changes for a workload: it was rolled, skipped or held.
//
// The fields that are not encoded as JSON are attributes of the CloudEvent. The others are its data. docs/reference/events.md lists both.
type Outcome struct {
	Cluster         string    `json:"-"` // the configured name of the cluster that the workload is in
	Verb            Verb      `json:"-"` // VerbStarted, VerbCompleted, VerbFailed, VerbSkipped or VerbHeld
	ResourceVersion string    `json:"-"` // the workload's resourceVersion, as last read
	Time            time.Time `json:"-"` // when the outcome was known
	// Cause is the id of the newest change. It is the extension "causationid".
	Cause string       `json:"-"`
	Trace TraceContext `json:"-"` // the context of the span that created the event; empty without tracing

	Workload Workload `json:"workload"`
	// Revision is the value of the annotation keyturn.dev/revision that the workload was rolled to, or would have been.
	Revision   string          `json:"revision,omitempty"`
	Reason     string          `json:"reason"`               // the reason for the decision or the failure, in kebab-case
	Message    string          `json:"message,omitempty"`    // explains the reason in one sentence
	Sources    []OutcomeSource `json:"sources,omitempty"`    // lists the changes, one for each source
	Generation int64           `json:"generation,omitempty"` // the workload's metadata.generation after the patch; zero if nothing was patched
	StartedAt  time.Time       `json:"startedAt,omitzero"`   // when the patch was accepted; zero if nothing was patched
}

// StreamChanges keeps the last outcome of a workload for 30 days. A workload without an outcome there is not being rolled. An outcome beyond the
// share of its namespace in StreamHistory is kept for CrowdedOutcomeTTL, and one beyond the share of an hour for FullOutcomeTTL.
const (
	CrowdedOutcomeTTL = 24 * time.Hour
	FullOutcomeTTL    = time.Hour
)

// OutcomeSource is one change of an Outcome.
type OutcomeSource struct {
	Source          string   `json:"source"` // has the form of Source.String
	Fingerprint     string   `json:"fingerprint,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Keys            []string `json:"keys,omitempty"`
	Event           string   `json:"event,omitempty"` // the id of the change
}

// ID returns the event's id. The same outcome of the same rollout has the same id, whoever publishes it and however often.
//
// If the outcome is not a state, the id includes the reason, because one change can be held at a workload for several reasons in turn.
func (o Outcome) ID() string {
	if !o.IsState() {
		return o.Workload.UID + "/" + o.Cause + "/" + string(o.Verb) + "/" + o.Reason
	}
	return o.Workload.UID + "/" + cmp.Or(o.Revision, o.Cause) + "/" + string(o.Verb)
}

// IsState reports whether the outcome becomes the state of its workload on StreamChanges. A hold does not, and neither does a response of pods to a
// reload request. A skip does only if it ends a rollout: any other skip is only history.
func (o Outcome) IsState() bool {
	switch o.Verb {
	case VerbHeld:
		return false
	case VerbSkipped:
		return !o.StartedAt.IsZero()
	}
	return o.Reason != ReasonReloadedInPlace
}

// Encode returns the outcome as a stream stores it. It returns a RejectError for an outcome that Stored.Outcome would reject.
func (o Outcome) Encode() (Stored, error) { return encode(o) }

// renamedReasons maps former reasons of outcomes to their present names. HISTORY still has them.
var renamedReasons = map[string]string{
	"already-rolled":          "up-to-date",
	"same-content":            "up-to-date",
	"changed-back":            "up-to-date",
	"pods-newer":              "up-to-date",
	"pods-waited":             "up-to-date",
	"source-needed":           "source-deleted",
	"recreated":               "appeared",
	"changed-meanwhile":       "content-changed",
	"namespace-limit-reached": "limit-reached",
	"source-on-hold":          "on-hold",
}

// Outcome returns the stored outcome, with the errors of Change. It replaces a former reason by its present name.
func (s Stored) Outcome() (Outcome, error) {
	o, err := decode(s, actuator, func(o *Outcome, v envelope) error {
		o.Cluster, o.Verb, o.Time, o.Trace = v.cluster, v.verb, v.time, v.trace
		o.ResourceVersion, o.Cause = v.attributes.text(extResourceVersion), v.attributes.text(extCausationID)
		return nil
	})
	if now, renamed := renamedReasons[o.Reason]; renamed {
		o.Reason = now // not earlier, because the id contains the reason
	}
	return o, err
}

// Subject returns the subject on StreamChanges.
func (o Outcome) Subject() string { return OutcomeSubject(o.Cluster, o.Workload) }

func (o Outcome) envelope() envelope {
	return envelope{
		cluster: o.Cluster, component: actuator, kind: KindRollout, verb: o.Verb, id: o.ID(), selfLink: o.Workload.selfLink(),
		uid: o.Workload.UID, time: o.Time, trace: o.Trace, attributes: o.Workload.attributes(o.ResourceVersion, o.Cause),
	}
}

func (o Outcome) validate() error {
	return cmp.Or(
		faultIf(o.ResourceVersion != "" && !isVersion(o.ResourceVersion), "the resourceversion is not a decimal number"),
		faultIf(!isText(o.Cause) || !isText(o.Revision), "the cause or the revision is not text"),
		o.Workload.validate())
}

// Workload names an object that a change affects: one whose pods are rolled, or an ExternalSecret that is synced.
type Workload struct {
	// Kind is the lower-case singular, one of workloadPaths: "deployment", or the name of a kind that comes from configuration.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// APIVersion and Resource are set for a kind from configuration only: "monitoring.coreos.com/v1" and the plural "prometheuses".
	APIVersion string `json:"apiVersion,omitempty"`
	Resource   string `json:"resource,omitempty"`
}

// workloadPaths contains the path in the Kubernetes API of each kind of workload that does not come from configuration.
var workloadPaths = map[string]struct{ group, plural string }{
	"deployment":     {"apps/v1", "deployments"},
	"statefulset":    {"apps/v1", "statefulsets"},
	"daemonset":      {"apps/v1", "daemonsets"},
	"cronjob":        {"batch/v1", "cronjobs"},
	"job":            {"batch/v1", "jobs"},
	"rollout":        {"argoproj.io/v1alpha1", "rollouts"},
	"externalsecret": {"external-secrets.io/v1", "externalsecrets"},
}

// String returns the form for users and kubectl, without the namespace: "deployment/web".
func (w Workload) String() string { return w.Kind + "/" + w.Name }

func (w Workload) attributes(resourceVersion, cause string) fields {
	return fields{
		{extNamespace, w.Namespace}, {extName, w.Name}, {extWorkloadKind, w.Kind}, {extResourceVersion, resourceVersion}, {extCausationID, cause},
	}
}

func (w Workload) validate() error {
	return faultIf(!isSubdomain(w.Namespace) || !isSubdomain(w.Name), "the namespace or the name of the workload is not a Kubernetes name")
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

// ValidateWorkloadKind checks the names of a kind of workload from configuration. The error begins with the field of Workload, as in JSON.
func ValidateWorkloadKind(kind, apiVersion, resource string) error {
	group, version, _ := strings.Cut(apiVersion, "/")
	_, known := workloadPaths[kind]
	switch {
	case !isSubdomain(group) || !strings.Contains(group, ".") || !isWord(version):
		return fmt.Errorf("apiVersion: %q, want the group and the version of a custom resource, such as example.org/v1", apiVersion)
	case known: // After the apiVersion, because another name would not help a kind of Kubernetes itself.
		return fmt.Errorf("kind: %q is another kind of workload, want a name of its own", kind)
	case !isWord(kind):
		return fmt.Errorf("kind: %q, want 1 to %d lower-case letters and digits", kind, maxLabel)
	case !isWord(resource):
		return fmt.Errorf("resource: %q, want the plural in the API, such as widgets", resource)
	}
	return nil
}

// OutcomeSubject returns the subject of the outcomes of a workload: keyturn.v1.<cluster>.rollout.<namespace>.<kind>-<name>.
func OutcomeSubject(cluster string, w Workload) string {
	return Address{Cluster: cluster, Kind: KindRollout, Namespace: w.Namespace, Name: w.Kind + "-" + w.Name}.Subject()
}
