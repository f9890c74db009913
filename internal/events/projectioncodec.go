package events

import (
	"errors"

	"github.com/cloudevents/sdk-go/v2/event"
)

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
