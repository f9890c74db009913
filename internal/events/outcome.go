package events

import "time"

// Outcome is what became of one or more changes at a workload: the payload of rollout.* events.
type Outcome struct {
	// Cluster is the configured name of the cluster the workload is in.
	Cluster string `json:"-"`
	// Verb is VerbStarted, VerbCompleted, VerbFailed, VerbSkipped or VerbHeld.
	Verb Verb `json:"-"`
	// ResourceVersion is the workload's own, as last seen.
	ResourceVersion string `json:"-"`
	// Time is when the outcome was known.
	Time time.Time `json:"-"`
	// Cause is the id of the newest change that led here: the "causationid" extension.
	Cause string `json:"-"`
	// Trace is the context of the span that made this outcome.
	Trace TraceContext `json:"-"`

	Workload Workload `json:"workload"`
	// Revision is the value of keyturn.dev/revision that the workload was, or would have been, rolled to.
	Revision string `json:"revision,omitempty"`
	// Reason is the typed reason of the decision or of the failure, in kebab-case.
	Reason string `json:"reason"`
	// Message is one sentence for people.
	Message string `json:"message,omitempty"`
	// Sources lists the changes, by source, that this outcome is of.
	Sources []OutcomeSource `json:"sources,omitempty"`
	// Generation is the workload's metadata.generation that the patch produced. Zero where nothing was patched.
	Generation int64 `json:"generation,omitempty"`
	// StartedAt is when the patch was accepted. Zero where nothing was patched.
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// OutcomeSource is one source of an outcome.
type OutcomeSource struct {
	// Source is in the form "secret/db".
	Source          string   `json:"source"`
	Fingerprint     string   `json:"fingerprint,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Keys            []string `json:"keys,omitempty"`
	// Event is the id of the change.
	Event string `json:"event,omitempty"`
}

// ID is the id of the event: the same outcome of the same rollout has the same id, whoever says it and however often.
//
// One change can be skipped or held at a workload for one reason after another, so the reason is part of it there.
func (o Outcome) ID() string {
	if o.Verb == VerbSkipped || o.Verb == VerbHeld {
		return o.Workload.UID + "/" + o.Cause + "/" + string(o.Verb) + "/" + o.Reason
	}
	what := o.Revision
	if what == "" {
		what = o.Cause
	}
	return o.Workload.UID + "/" + what + "/" + string(o.Verb)
}
