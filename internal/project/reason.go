package project

import "github.com/keyturn/keyturn/internal/events"

// reason says what became of a resource's fields. It is a metric label, and in events.
type reason string

const (
	// reasonNone means that there is nothing to do, and nothing to report.
	reasonNone reason = ""
	// reasonApplied means that the fields have other values than before.
	reasonApplied reason = "applied"
	// reasonReleased means that the resource wants fewer fields than it had. Those that nobody else owns are gone.
	reasonReleased reason = "released"
	// reasonRecovered means that the fields have the values, without a write, after something else was reported.
	reasonRecovered reason = "recovered"
	// reasonSecretMissing and reasonKeyMissing mean that the fields are left as they are.
	reasonSecretMissing reason = "secret-missing"
	reasonKeyMissing    reason = "key-missing"
	// reasonAnnotation means that the annotation cannot be read.
	reasonAnnotation reason = "annotation-invalid"
	// reasonNotGiven means that the configuration does not give the resource what it wants.
	reasonNotGiven reason = "not-given"
	// reasonNotText means that a value is not UTF-8.
	reasonNotText reason = "not-text"
	// reasonConflict means that another manager owns one of the fields.
	reasonConflict reason = "conflict"
	// reasonShared means that the fields have the values, and that another manager owns one of them, too. The next value will be a conflict.
	reasonShared reason = "shared"
	// reasonRejected means that the API server does not accept the resource with the values.
	reasonRejected reason = "rejected"
	// reasonNotKept means that the API server has stored other values than were applied, as when a webhook alters them.
	reasonNotKept reason = "not-kept"
	// reasonForbidden means that a permission is missing, or that an admission policy or webhook refuses it.
	reasonForbidden reason = "forbidden"
	// reasonUnavailable means that requests have failed several times. They are repeated.
	reasonUnavailable reason = "unavailable"
)

// String returns the reason as metrics and events have it.
func (r reason) String() string { return string(r) }

// open reports whether the fields do not have the values, or will not have the next ones.
func (r reason) open() bool { return r != reasonNone && r.verb() != events.VerbApplied }

// refused reports whether the resource itself is why. Another generation of it may be accepted.
func (r reason) refused() bool {
	return r == reasonConflict || r == reasonRejected || r == reasonNotKept || r == reasonForbidden
}

// verb returns that of the event with the reason.
func (r reason) verb() events.Verb {
	switch r {
	case reasonApplied, reasonReleased, reasonRecovered:
		return events.VerbApplied
	case reasonSecretMissing, reasonKeyMissing:
		return events.VerbSkipped
	}
	return events.VerbFailed
}

// result is what became of a resource's fields, for a reader.
type result struct {
	reason  reason
	message string
	// version is the resourceVersion of the resource afterwards. Empty if it was not written.
	version string
	// generation is that of the resource as the API server knew it, if it was asked to write it.
	generation int64
	// versions are those of the Secrets that were read, by name.
	versions map[string]string
}
