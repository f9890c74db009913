package notify

import (
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// notice is an outcome in the form for templates, and the JSON for a webhook without a template.
type notice struct {
	// ID is the same each time the outcome is sent.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Cluster is the configured name of the cluster.
	Cluster string `json:"cluster"`
	// What is "Rollout" or "Sync".
	What string `json:"what"`
	// Verb is started, completed, failed, held or skipped.
	Verb string `json:"verb"`
	// Kind, Namespace and Name are those of the workload, or of the ExternalSecret of a sync.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reason is in kebab-case. Message explains it in a sentence without a period, and may be empty.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Revision is the revision that the workload was rolled to. It may be empty.
	Revision string `json:"revision,omitempty"`
	// Sources are the sources that changed: "secret/db".
	Sources []string `json:"sources,omitempty"`
	// TraceID is the id of the trace that led to the outcome. Empty without tracing.
	TraceID string `json:"traceId,omitempty"`
}

func newNotice(o events.Outcome, escape *strings.Replacer) notice {
	n := notice{
		ID: o.ID(), Time: o.Time, Cluster: o.Cluster, What: "Rollout", Verb: string(o.Verb),
		Kind: o.Workload.Kind, Namespace: o.Workload.Namespace, Name: o.Workload.Name,
		Reason: escape.Replace(o.Reason), Message: escape.Replace(o.Message), Revision: escape.Replace(o.Revision),
		TraceID: o.Trace.ID(),
	}
	if strings.HasSuffix(o.Workload.Kind, "externalsecret") {
		n.What = "Sync"
	}
	for _, source := range o.Sources {
		n.Sources = append(n.Sources, escape.Replace(source.Source))
	}
	return n
}

// values returns the values by the names of their placeholders.
func (n notice) values() map[string]string {
	return map[string]string{
		"id": n.ID, "time": n.Time.Format(time.RFC3339), "cluster": n.Cluster, "what": n.What, "verb": n.Verb,
		"kind": n.Kind, "namespace": n.Namespace, "name": n.Name, "workload": n.workload(),
		"reason": n.Reason, "message": n.Message, "revision": n.Revision, "sources": strings.Join(n.Sources, ", "),
		"traceId": n.TraceID, "text": n.text(),
	}
}

// workload returns the short form within a namespace: "deployment/web".
func (n notice) workload() string { return n.Kind + "/" + n.Name }

// text returns the message to a chat service without a template. The sources are last, because a long text is cut at its end.
func (n notice) text() string {
	text := n.What + " " + n.Verb + ": " + n.workload() + " in namespace " + n.Namespace + " of cluster " + n.Cluster
	if n.Message != "" {
		text += ", " + n.Message
	}
	text += " (" + n.Reason + ")."
	if n.TraceID != "" {
		text += " Trace " + n.TraceID + "."
	}
	if len(n.Sources) > 0 {
		text += " Changed: " + strings.Join(n.Sources, ", ") + "."
	}
	return text
}
