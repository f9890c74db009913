package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Projection is the event about a resource that wants the values of Secrets in its fields. It says that the resource has them, or why it does not.
// It names keys and fields, and contains nothing that is derived from a value.
//
// The fields that are not encoded as JSON are attributes of the CloudEvent. The others are its data. docs/events.md lists both.
type Projection struct {
	// Cluster is the configured name of the cluster that the resource is in.
	Cluster string `json:"-"`
	// Verb is VerbApplied, VerbSkipped or VerbFailed.
	Verb Verb `json:"-"`
	// ResourceVersion is the resource's resourceVersion, as last read.
	ResourceVersion string `json:"-"`
	// Time is when the result was known.
	Time time.Time `json:"-"`
	// Cause is the id of the change of a Secret that caused the projection. It is the extension "causationid". It is empty if there was no change, as
	// when the projector starts.
	Cause string `json:"-"`
	// Trace is the context of the span that created the event. It is empty without tracing.
	Trace TraceContext `json:"-"`

	// Target is the resource. Its kind comes from configuration.
	Target Workload `json:"target"`
	// Reason is the reason in kebab-case.
	Reason string `json:"reason"`
	// Message explains the reason in one sentence.
	Message string `json:"message,omitempty"`
	// Fields lists the fields that the resource wants. It is empty if the annotation cannot be read, or there is none.
	Fields []ProjectedField `json:"fields,omitempty"`
}

// ProjectedField is a field that has, or wants, the value of a key.
type ProjectedField struct {
	// Path is the path of the field, as in the annotation.
	Path string `json:"path"`
	// Source has the form of Source.String.
	Source string `json:"source"`
	Key    string `json:"key"`
	// ResourceVersion is the resourceVersion of the Secret that was read. It is empty if the Secret was not read.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ID returns the event's id. The same result has the same id for the same change or, without a change, for the same resourceVersion of the resource.
func (p Projection) ID() string {
	of := p.Cause
	if of == "" {
		of = p.ResourceVersion
	}
	return p.Target.UID + "/" + of + "/" + string(p.Verb) + "/" + p.Reason
}

// ProjectionSubject returns the subject of the projections of a resource: keyturn.v1.<cluster>.projection.<namespace>.<kind>-<name>. Projections
// are on StreamHistory only.
func ProjectionSubject(cluster string, target Workload) string {
	return Address{Cluster: cluster, Kind: KindProjection, Namespace: target.Namespace, Name: target.Kind + "-" + target.Name}.subject()
}

// PublishProjection publishes a projection on StreamHistory. After an error, unless that is a RejectError, it may be called again with the same
// projection. If it is repeated within minutes, the projection is not stored twice.
func (b *Bus) PublishProjection(ctx context.Context, p Projection) error {
	if p.Cluster != b.cluster {
		return rejectf(ReasonForeignCluster, "the projection is of cluster %q, want %q", p.Cluster, b.cluster)
	}
	e, err := p.Event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, ProjectionSubject(b.cluster, p.Target))
	if err != nil {
		return err
	}
	taken, ok := b.share.take(ctx, p.Target.Namespace, msg.Size())
	if !ok {
		return nil
	}
	ack, err := b.store(ctx, StreamHistory, HistorySubject(msg.Subject), msg, b.messageID(e.ID()), forSoLong(taken.ttl)...)
	if err != nil || ack.Duplicate {
		taken.giveBack()
	}
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// Event encodes the projection as a CloudEvent. It returns a RejectError for a projection that parseProjection would reject.
func (p Projection) Event() (event.Event, error) {
	if err := p.validate(); err != nil {
		return event.Event{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return p.envelope().event(p)
}

// parseProjection decodes a projection. It returns a RejectError for an event that Projection.Event cannot have made.
func parseProjection(e event.Event) (Projection, error) {
	var p Projection
	v, err := parseEnvelope(e, projector, &p)
	if err != nil {
		return Projection{}, err
	}
	if v.kind != KindProjection {
		return Projection{}, rejectf(ReasonUnknownType, "the event is of kind %s, want a projection", v.kind)
	}
	p.Cluster, p.Verb, p.Time, p.Trace = v.cluster, v.verb, v.time, v.trace
	p.ResourceVersion, p.Cause = v.extensions[extResourceVersion], v.extensions[extCausationID]
	named := Workload{
		Kind: v.extensions[extWorkloadKind], Namespace: v.extensions[extNamespace], Name: v.extensions[extName], UID: v.uid,
		APIVersion: p.Target.APIVersion, Resource: p.Target.Resource,
	}
	if p.Target != named {
		return Projection{}, rejectf(ReasonMalformed, "the attributes and the data name different resources")
	}
	if err := p.validate(); err != nil {
		return Projection{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	if err := v.matches(p.envelope()); err != nil {
		return Projection{}, err
	}
	return p, nil
}

// validateProjection checks that the projection is about the resource that its subject names.
func validateProjection(subject string, p Projection) error {
	if _, err := ParseSubject(subject); err != nil {
		return err
	}
	if ProjectionSubject(p.Cluster, p.Target) != subject {
		return rejectf(ReasonSubjectMismatch, "the event on %s is about another resource", subject)
	}
	return nil
}

func (p Projection) envelope() envelope {
	return envelope{
		cluster: p.Cluster, component: projector, kind: KindProjection, verb: p.Verb,
		id: p.ID(), selfLink: p.Target.selfLink(), uid: p.Target.UID, time: p.Time, trace: p.Trace,
		extensions: map[string]string{
			extNamespace:       p.Target.Namespace,
			extName:            p.Target.Name,
			extWorkloadKind:    p.Target.Kind,
			extResourceVersion: p.ResourceVersion,
			extCausationID:     p.Cause,
		},
	}
}

func (p Projection) validate() error {
	switch {
	case !isLabel(p.Cluster):
		return errors.New("the cluster is not a DNS label")
	case !hasVerb(KindProjection, p.Verb):
		return errors.New("a projection has no such verb")
	case p.Target.selfLink() == "":
		return errors.New("the kind of the resource is unknown")
	case !isSubdomain(p.Target.Namespace) || !isSubdomain(p.Target.Name):
		return errors.New("the namespace or the name of the resource is not a Kubernetes name")
	case !isUID(p.Target.UID):
		return errors.New("the uid of the resource is not a Kubernetes UID")
	case !isVersion(p.ResourceVersion):
		return errors.New("the resourceversion is not a decimal number")
	case !isText(p.Cause) || !isText(p.Reason):
		return errors.New("the cause or the reason is not text")
	case p.Time.IsZero():
		return errors.New("the time is missing")
	}
	return nil
}
