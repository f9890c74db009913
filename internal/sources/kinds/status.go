package kinds

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// maxStatus is the maximum length of a text that is taken from a status, in bytes.
const maxStatus = 256

// status is the fingerprinted condition of an ExternalSecret or a Certificate.
type status struct {
	// verb is the verb of the event for the status. It is empty before the first sync, and while a certificate is being issued.
	verb   events.Verb
	fields events.Status
}

// content returns the data to fingerprint. Two events with the same content report the same status.
func (s status) content() map[string][]byte {
	content := map[string][]byte{"verb": []byte(s.verb)}
	if s.verb != "" {
		content["revision"] = []byte(s.fields.Revision)
	}
	switch s.verb {
	case events.VerbSynced:
		content["secret"] = []byte(s.fields.Secret)
	case events.VerbFailed:
		content["reason"], content["expiring"] = []byte(s.fields.Reason), []byte(strconv.FormatBool(s.fields.Expiring))
	}
	return content
}

// utc returns a time from a status, or zero.
func utc(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// compareStatus returns the event for the status of an object, compared with the last event on its subject. It returns false if there is nothing to
// publish. Like compare, it is a pure function, and it handles deleted and recreated objects in the same way.
func compareStatus(before *LastEvent, now *Object, current status, content []fingerprints) (events.Change, bool) {
	switch {
	case now == nil:
		return deleted(before)
	case !before.IsReadable():
		return describeStatus(now, current, events.VerbObserved, nil, content[0]), true
	case before.isAheadOf(now):
		return events.Change{}, false
	}
	comparable, found := under(content, before.KeyID())
	same := found && comparable.all == before.All ||
		// Without the key of the last event, nothing can be compared, but an object that was not written since has the same status.
		!found && before.isOf(now)
	last := before.rare().Status
	switch {
	case before.Verb() == events.VerbDeleted && (same || current.verb == ""):
		return describeStatus(now, current, events.VerbObserved, before, content[0]), true
	case same, current.verb == "":
		return events.Change{}, false
	case current.verb == events.VerbIssued && last != nil && current.fields.Revision == last.Revision:
		// The failure was cleared without a new certificate.
		return describeStatus(now, current, events.VerbObserved, before, content[0]), true
	}
	return describeStatus(now, current, current.verb, before, content[0]), true
}

func describeStatus(now *Object, current status, verb events.Verb, before *LastEvent, content fingerprints) events.Change {
	change := events.Change{
		Verb: verb, Source: now.Source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: content.all.Text(content.keyID), Status: &current.fields,
	}
	if before != nil {
		change.ChangedAt, change.Previous = before.ChangedAt, before.Fingerprint()
	}
	if verb != events.VerbObserved {
		change.ChangedAt = now.ResourceVersion
	}
	return change
}

// assessStatus compares the status of an object, as refined by refine, with the last event.
func assessStatus(v View, before *LastEvent, now *Object, refine func(status) status) (events.Change, bool) {
	switch {
	case now == nil:
		return deleted(before)
	case now.details.status == nil:
		v.Log.WarnContext(context.Background(), "cannot read the status of an object; ignoring it",
			"source", now.Source.String(), "namespace", now.Source.Namespace)
		return events.Change{}, false
	}
	current := refine(*now.details.status)
	return compareStatus(before, now, current, v.Ring.fingerprint(now.Source, current.content()))
}

// newStatusObject reduces a custom resource to its status and the request in its annotations.
func newStatusObject(kind events.Kind, meta metav1.Object, s *status) *Object {
	return &Object{
		Source: nameOf(kind, meta), UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion(),
		extras: extras{details: &details{asked: requestOf(meta.GetAnnotations()), status: s}},
	}
}
