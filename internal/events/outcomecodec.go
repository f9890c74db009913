package events

import (
	"errors"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Event encodes the outcome as a CloudEvent. It returns a RejectError for an outcome that ParseOutcome would reject.
func (o Outcome) Event() (event.Event, error) {
	if err := o.validate(); err != nil {
		return event.Event{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return o.envelope().event(o)
}

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
	named := Workload{
		Kind: v.extensions[extWorkloadKind], Namespace: v.extensions[extNamespace], Name: v.extensions[extName], UID: v.uid,
		// Only the data has these two. The subject attribute is derived from them.
		APIVersion: o.Workload.APIVersion, Resource: o.Workload.Resource,
	}
	if o.Workload != named {
		return Outcome{}, rejectf(ReasonMalformed, "the attributes and the data name different workloads")
	}
	if err := o.validate(); err != nil {
		return Outcome{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	if err := v.matches(o.envelope()); err != nil {
		return Outcome{}, err
	}
	return o, nil
}

// validateOutcome checks that the outcome is about the workload that its subject names.
func validateOutcome(subject string, o Outcome) error {
	if _, err := ParseSubject(subject); err != nil {
		return err
	}
	if OutcomeSubject(o.Cluster, o.Workload) != subject {
		return rejectf(ReasonSubjectMismatch, "the event on %s is about another workload", subject)
	}
	return nil
}

func (o Outcome) envelope() envelope {
	return envelope{
		cluster: o.Cluster, component: actuator, kind: KindRollout, verb: o.Verb,
		id: o.ID(), selfLink: o.Workload.selfLink(), uid: o.Workload.UID, time: o.Time, trace: o.Trace,
		extensions: map[string]string{
			extNamespace:       o.Workload.Namespace,
			extName:            o.Workload.Name,
			extWorkloadKind:    o.Workload.Kind,
			extResourceVersion: o.ResourceVersion,
			extCausationID:     o.Cause,
		},
	}
}

func (o Outcome) validate() error {
	switch {
	case !isLabel(o.Cluster):
		return errors.New("the cluster is not a DNS label")
	case !hasVerb(KindRollout, o.Verb):
		return errors.New("an outcome has no such verb")
	case o.Workload.selfLink() == "":
		return errors.New("the kind of the workload is unknown")
	case !isSubdomain(o.Workload.Namespace) || !isSubdomain(o.Workload.Name):
		return errors.New("the namespace or the name of the workload is not a Kubernetes name")
	case !isUID(o.Workload.UID):
		return errors.New("the uid of the workload is not a Kubernetes UID")
	case o.ResourceVersion != "" && !isVersion(o.ResourceVersion):
		return errors.New("the resourceversion is not a decimal number")
	case !isText(o.Cause) || !isText(o.Revision):
		return errors.New("the cause or the revision is not text")
	case o.Time.IsZero():
		return errors.New("the time is missing")
	}
	return nil
}
