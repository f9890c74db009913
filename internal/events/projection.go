package events

import (
	"cmp"
	"time"
)

// Projection is the event about a resource that wants the values of Secrets in its fields. It reports that the resource has them, or why it does not.
// It names keys and fields, and contains nothing that is derived from a value.
//
// The fields that are not encoded as JSON are attributes of the CloudEvent. The others are its data. docs/reference/events.md lists both.
type Projection struct {
	Cluster         string    `json:"-"` // the configured name of the cluster that the resource is in
	Verb            Verb      `json:"-"` // VerbApplied, VerbSkipped or VerbFailed
	ResourceVersion string    `json:"-"` // the resource's resourceVersion, as last read
	Time            time.Time `json:"-"` // when the result was known
	// Cause is the id of the Secret's change that caused the projection, the extension "causationid". It is empty if there was none.
	Cause string       `json:"-"`
	Trace TraceContext `json:"-"` // the context of the span that created the event; empty without tracing

	// Target is the resource. Its kind comes from configuration.
	Target  Workload `json:"target"`
	Reason  string   `json:"reason"`            // the reason in kebab-case
	Message string   `json:"message,omitempty"` // explains the reason in one sentence
	// Fields lists the wanted fields. It is empty if the annotation cannot be read, or does not exist.
	Fields []ProjectedField `json:"fields,omitempty"`
}

// ProjectedField is a field that has, or wants, the value of a key.
type ProjectedField struct {
	Path            string `json:"path"`   // the path of the field, as in the annotation
	Source          string `json:"source"` // has the form of Source.String
	Key             string `json:"key"`
	ResourceVersion string `json:"resourceVersion,omitempty"` // the resourceVersion of the Secret that was read; empty if the Secret was not read
}

// ID returns the event's id. The same result has the same id for the same change or, without a change, for the same resourceVersion of the resource.
func (p Projection) ID() string {
	return p.Target.UID + "/" + cmp.Or(p.Cause, p.ResourceVersion) + "/" + string(p.Verb) + "/" + p.Reason
}

// Encode returns the projection as a stream stores it. It returns a RejectError for a projection that Stored.Projection would reject.
func (p Projection) Encode() (Stored, error) { return encode(p) }

// Projection returns the stored projection, with the errors of Change.
func (s Stored) Projection() (Projection, error) {
	return decode(s, projector, func(p *Projection, v envelope) error {
		p.Cluster, p.Verb, p.Time, p.Trace = v.cluster, v.verb, v.time, v.trace
		p.ResourceVersion, p.Cause = v.attributes.text(extResourceVersion), v.attributes.text(extCausationID)
		return nil
	})
}

// Subject returns keyturn.v1.<cluster>.projection.<namespace>.<kind>-<name>, the subject on StreamChanges.
func (p Projection) Subject() string {
	return Address{Cluster: p.Cluster, Kind: KindProjection, Namespace: p.Target.Namespace, Name: p.Target.Kind + "-" + p.Target.Name}.Subject()
}

func (p Projection) envelope() envelope {
	return envelope{
		cluster: p.Cluster, component: projector, kind: KindProjection, verb: p.Verb, id: p.ID(), selfLink: p.Target.selfLink(),
		uid: p.Target.UID, time: p.Time, trace: p.Trace, attributes: p.Target.attributes(p.ResourceVersion, p.Cause),
	}
}

func (p Projection) validate() error {
	return cmp.Or(
		faultIf(!isVersion(p.ResourceVersion), "the resourceversion is not a decimal number"),
		faultIf(!isText(p.Cause) || !isText(p.Reason), "the cause or the reason is not text"),
		p.Target.validate())
}
