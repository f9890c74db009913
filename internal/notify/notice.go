package notify

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// notice is an outcome as templates see it, and as a webhook without a template gets it.
type notice struct {
	// ID is the same whenever the same outcome is sent.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Cluster is the configured name of the cluster.
	Cluster string `json:"cluster"`
	// What is "Rollout" or "Sync".
	What string `json:"what"`
	// Verb is what became of it: started, completed, failed, held or skipped.
	Verb string `json:"verb"`
	// Kind, Namespace and Name are those of the workload; of a sync, those of the ExternalSecret.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reason is in kebab-case, and Message says it in a sentence without a full stop. Message may be empty.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Revision is what the workload was rolled to. It may be empty.
	Revision string `json:"revision,omitempty"`
	// Sources are what has changed, each in the form "secret/db".
	Sources []string `json:"sources,omitempty"`
	// TraceID is the trace in which it is seen how it came about. It is empty where there is none.
	TraceID string `json:"traceId,omitempty"`
}

// workload is the form that people use within one namespace: "deployment/web".
func (n notice) workload() string { return n.Kind + "/" + n.Name }

// newNotice makes the notice of an outcome, with its values escaped.
func newNotice(o events.Outcome, escape *strings.Replacer) notice {
	n := notice{
		ID: o.ID(), Time: o.Time, Cluster: o.Cluster, What: "Rollout", Verb: string(o.Verb),
		Kind: o.Workload.Kind, Namespace: o.Workload.Namespace, Name: o.Workload.Name,
		Reason: escape.Replace(o.Reason), Message: escape.Replace(o.Message), Revision: escape.Replace(o.Revision),
	}
	if strings.HasSuffix(o.Workload.Kind, "externalsecret") {
		n.What = "Sync"
	}
	for _, source := range o.Sources {
		n.Sources = append(n.Sources, escape.Replace(source.Source))
	}
	if id := trace.SpanContextFromContext(o.Trace.Context(context.Background())).TraceID(); id.IsValid() {
		n.TraceID = id.String()
	}
	return n
}
