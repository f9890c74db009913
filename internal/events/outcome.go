package events

import (
	"errors"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Outcome is the event about what became of one or more changes at a workload: it was rolled, skipped or held.
//
// The fields that are not encoded as JSON are attributes of the CloudEvent. The others are its data. docs/events.md lists both.
type Outcome struct {
	// Cluster is the configured name of the cluster that the workload is in.
	Cluster string `json:"-"`
	// Verb is VerbStarted, VerbCompleted, VerbFailed, VerbSkipped or VerbHeld.
	Verb Verb `json:"-"`
	// ResourceVersion is the workload's resourceVersion, as last read.
	ResourceVersion string `json:"-"`
	// Time is when the outcome was known.
	Time time.Time `json:"-"`
	// Cause is the id of the newest of the changes. It is the extension "causationid".
	Cause string `json:"-"`
	// Trace is the context of the span that created the event. It is empty without tracing.
	Trace TraceContext `json:"-"`

	Workload Workload `json:"workload"`
	// Revision is the value of the annotation keyturn.dev/revision that the workload was rolled to, or would have been.
	Revision string `json:"revision,omitempty"`
	// Reason is the reason for the decision or the failure, in kebab-case.
	Reason string `json:"reason"`
	// Message explains the reason in one sentence.
	Message string `json:"message,omitempty"`
	// Sources lists the changes, one for each source.
	Sources []OutcomeSource `json:"sources,omitempty"`
	// Generation is the workload's metadata.generation after the patch. It is zero if nothing was patched.
	Generation int64 `json:"generation,omitempty"`
	// StartedAt is when the patch was accepted. It is zero if nothing was patched.
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// OutcomeSource is one change of an Outcome.
type OutcomeSource struct {
	// Source has the form of Source.String.
	Source          string   `json:"source"`
	Fingerprint     string   `json:"fingerprint,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Keys            []string `json:"keys,omitempty"`
	// Event is the id of the change.
	Event string `json:"event,omitempty"`
}

// ID returns the event's id. The same outcome of the same rollout has the same id, whoever publishes it and however often.
//
// If the outcome is not a state, the id includes the reason, because one change can be held at a workload for several reasons in turn.
func (o Outcome) ID() string {
	if !o.IsState() {
		return o.Workload.UID + "/" + o.Cause + "/" + string(o.Verb) + "/" + o.Reason
	}
	of := o.Revision
	if of == "" {
		of = o.Cause
	}
	return o.Workload.UID + "/" + of + "/" + string(o.Verb)
}

// IsState reports whether the outcome becomes the state of its workload on StreamChanges. A hold does not, and neither does the answer of
// pods to a reload request. A skip does only if it ends a rollout: any other skip says what the workload did not do, which is only history.
func (o Outcome) IsState() bool {
	switch o.Verb {
	case VerbHeld:
		return false
	case VerbSkipped:
		return !o.StartedAt.IsZero()
	}
	return o.Reason != ReasonReloadedInPlace
}

// Event encodes the outcome as a CloudEvent. It returns a RejectError for an outcome that ParseOutcome would reject.
func (o Outcome) Event() (event.Event, error) { return encode(o) }

// ParseOutcome decodes an outcome. It returns a RejectError for an event that Outcome.Event cannot have made.
func ParseOutcome(e event.Event) (Outcome, error) {
	var o Outcome
	v, err := parseEnvelope(e, actuator, &o)
	if err != nil {
		return Outcome{}, err
	}
	if v.kind != KindRollout {
		return Outcome{}, rejectf(ReasonUnknownType, "the event is of kind %s, want an outcome", v.kind)
	}
	o.Cluster, o.Verb, o.Time, o.Trace = v.cluster, v.verb, v.time, v.trace
	o.ResourceVersion, o.Cause = v.extensions[extResourceVersion], v.extensions[extCausationID]
	if err := o.Workload.isNamedBy(v); err != nil {
		return Outcome{}, err
	}
	if err := v.matches(o); err != nil {
		return Outcome{}, err
	}
	return o, nil
}

func (o Outcome) subject() string { return OutcomeSubject(o.Cluster, o.Workload) }

func (o Outcome) envelope() envelope {
	return envelope{
		cluster: o.Cluster, component: actuator, kind: KindRollout, verb: o.Verb, id: o.ID(), selfLink: o.Workload.selfLink(),
		uid: o.Workload.UID, time: o.Time, trace: o.Trace, extensions: o.Workload.extensions(o.ResourceVersion, o.Cause),
	}
}

func (o Outcome) validate() error {
	switch {
	case o.ResourceVersion != "" && !isVersion(o.ResourceVersion):
		return errors.New("the resourceversion is not a decimal number")
	case !isText(o.Cause) || !isText(o.Revision):
		return errors.New("the cause or the revision is not text")
	}
	return o.Workload.validate()
}
