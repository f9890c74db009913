package sources

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// maxStatus is the longest text that is taken from a status, in bytes.
const maxStatus = 256

// status is the fingerprinted condition of an ExternalSecret or a Certificate.
type status struct {
	// verb is the verb of the event for the status. It is empty while the outcome is open: before the first sync, and while a certificate is being
	// issued.
	verb   events.Verb
	fields events.Status
}

// content returns the data to fingerprint. Two events with the same content report the same status.
func (s status) content() map[string][]byte {
	content := map[string][]byte{"verb": []byte(s.verb)}
	add := func(name, text string) { content[name] = []byte(text) }
	switch s.verb {
	case events.VerbSynced:
		add("revision", s.fields.Revision)
		add("secret", s.fields.Secret)
	case events.VerbIssued:
		add("revision", s.fields.Revision)
	case events.VerbFailed:
		add("revision", s.fields.Revision)
		add("reason", s.fields.Reason)
		add("expiring", strconv.FormatBool(s.fields.Expiring))
	}
	return content
}

// at returns the status of a Certificate at the given time. A certificate that was not renewed by its renewal time is expiring.
func (s status) at(now time.Time) status {
	renewal := s.fields.RenewalTime
	s.fields.Expiring = s.verb == events.VerbFailed && !renewal.IsZero() && !now.Before(renewal)
	return s
}

// utc returns a time from a status, or zero.
func utc(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
