package sources

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

// standing is how an ExternalSecret or a Certificate stands. It is the content of these, as data is that of a Secret.
type standing struct {
	// verb is that of the event which tells it. It is empty while nothing is decided: before the first time, and while a
	// certificate is being issued.
	verb   events.Verb
	status events.Status
}

// maxStatus is the longest text that is taken from a status, in bytes.
const maxStatus = 256

// content is what is fingerprinted: what two events must have in common to say the same.
func (s standing) content() map[string][]byte {
	content := map[string][]byte{"verb": []byte(s.verb)}
	add := func(name, text string) { content[name] = []byte(text) }
	switch s.verb {
	case events.VerbSynced:
		add("revision", s.status.Revision)
		add("secret", s.status.Secret)
	case events.VerbIssued:
		add("revision", s.status.Revision)
	case events.VerbFailed:
		add("revision", s.status.Revision)
		add("reason", s.status.Reason)
		add("expiring", strconv.FormatBool(s.status.Expiring))
	}
	return content
}

// reduceStanding makes an object of a custom resource. Of its metadata it keeps what it is called and what asked for it.
func reduceStanding(kind events.Kind, meta metav1.Object, s *standing) *object {
	return &object{
		source: nameOf(kind, meta), UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion(),
		about: &about{asked: requestOf(meta.GetAnnotations()), standing: s},
	}
}

// decodeField reads one field of a custom resource. What is newer than the type is passed over; a field that is not there
// leaves the type as it is.
func decodeField(resource *unstructured.Unstructured, into any, path ...string) error {
	field, found, err := unstructured.NestedMap(resource.Object, path...)
	if err != nil || !found {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(field, into); err != nil {
		return fmt.Errorf("decoding %v: %w", path, err)
	}
	return nil
}

// compareStanding says what it means against the last event on its subject how an object stands. It is a pure function,
// like compare, and tells the same of what is gone and of what is there again.
func compareStanding(before *last, now *object, stands standing, current []prints) (events.Change, bool) {
	switch {
	case now == nil && (!before.tells() || before.verb == events.VerbDeleted):
		return events.Change{}, false
	case now == nil:
		return deleted(before), true
	case !before.tells():
		return describeStanding(now, stands, events.VerbObserved, nil, current[0]), true
	}
	prints, comparable := under(current, before.keyID)
	same := comparable && prints.all == before.all ||
		// Under a key that has left the key file nothing can be compared, but an object that was not written is the same.
		!comparable && before.uid == string(now.UID) && before.version == now.ResourceVersion
	switch {
	case before.verb == events.VerbDeleted && (same || stands.verb == ""):
		return describeStanding(now, stands, events.VerbObserved, before, current[0]), true
	case same, stands.verb == "":
		return events.Change{}, false
	case stands.verb == events.VerbIssued && stands.status.Revision == before.statusRevision():
		// It stands differently, but not because it was issued: whoever wrote the status took a failure back.
		return describeStanding(now, stands, events.VerbObserved, before, current[0]), true
	}
	return describeStanding(now, stands, stands.verb, before, current[0]), true
}

func describeStanding(now *object, stands standing, verb events.Verb, before *last, current prints) events.Change {
	change := events.Change{
		Verb: verb, Source: now.source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: current.all.text(current.keyID), Status: &stands.status,
	}
	if before != nil {
		change.ChangedAt, change.Previous = before.changedAt, before.all.text(before.keyID)
	}
	if verb != events.VerbObserved {
		change.ChangedAt = now.ResourceVersion
	}
	return change
}

// assessStanding says what the event of an object is, by how it stands when it was looked at more closely.
func (w *Watcher) assessStanding(before *last, now *object, closely func(standing) standing) (events.Change, bool) {
	switch {
	case now == nil:
		return compareStanding(before, nil, standing{}, nil)
	case now.about.standing == nil:
		w.log.WarnContext(context.Background(), "the status of an object cannot be read; nothing is said of it",
			"source", now.source.String(), "namespace", now.source.Namespace)
		return events.Change{}, false
	}
	stands := closely(*now.about.standing)
	return compareStanding(before, now, stands, w.ring.fingerprint(now.source, stands.content()))
}

// utc is the time that a status has, zero where it has none.
func utc(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
