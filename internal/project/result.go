package project

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// reason explains the state of a resource's fields. It is a metric label and part of events.
type reason string

const (
	// reasonNone means that there is nothing to do, and nothing to report.
	reasonNone reason = ""
	// reasonApplied means that new values were written to the fields.
	reasonApplied reason = "applied"
	// reasonReleased means that the resource wants fewer fields than before. The others are removed, unless another manager owns them, too.
	reasonReleased reason = "released"
	// reasonRecovered means that the fields have the values, without a write, after a problem was reported.
	reasonRecovered reason = "recovered"
	// reasonSecretMissing and reasonKeyMissing mean that the fields are left as they are.
	reasonSecretMissing reason = "secret-missing"
	reasonKeyMissing    reason = "key-missing"
	// reasonAnnotation means that the annotation cannot be read.
	reasonAnnotation reason = "annotation-invalid"
	// reasonNotGiven means that the configuration does not allow the field, the Secret or the key for the resource.
	reasonNotGiven reason = "not-given"
	// reasonNotText means that a value is not UTF-8.
	reasonNotText reason = "not-text"
	// reasonConflict means that another manager owns one of the fields.
	reasonConflict reason = "conflict"
	// reasonShared means that the fields have the values, but another manager owns one of them, too. The next value will be a conflict.
	reasonShared reason = "shared"
	// reasonRejected means that the API server does not accept the resource with the values.
	reasonRejected reason = "rejected"
	// reasonNotKept means that the API server stored values other than the applied ones, for example because a webhook altered them.
	reasonNotKept reason = "not-kept"
	// reasonForbidden means that a permission is missing, or that an admission policy or webhook refuses the request.
	reasonForbidden reason = "forbidden"
	// reasonUnavailable means that requests have failed several times. They are retried.
	reasonUnavailable reason = "unavailable"
)

// String returns the reason as it appears in metrics and events.
func (r reason) String() string { return string(r) }

// open reports whether the fields lack the values, or will not get the next ones.
func (r reason) open() bool { return r != reasonNone && r.verb() != events.VerbApplied }

// refused reports whether the resource itself may be the cause. Another generation of it may be accepted.
func (r reason) refused() bool {
	return r == reasonConflict || r == reasonRejected || r == reasonNotKept || r == reasonForbidden
}

// verb returns the verb of the event with the reason.
func (r reason) verb() events.Verb {
	switch r {
	case reasonApplied, reasonReleased, reasonRecovered:
		return events.VerbApplied
	case reasonSecretMissing, reasonKeyMissing:
		return events.VerbSkipped
	}
	return events.VerbFailed
}

// result is the outcome of processing a resource.
type result struct {
	reason  reason
	message string
	// version is the resourceVersion of the resource after the write. It is empty if the resource was not written.
	version string
	// generation is the generation of the resource before the write, or after it if the write succeeded. It is zero without a write.
	generation int64
	// versions contains the resourceVersions of the Secrets that were read, by name.
	versions map[string]string
}

// unwritten returns the result for a request that changed nothing.
func (r result) unwritten() result {
	if r.version = ""; !r.reason.open() {
		r.reason, r.message = reasonNone, ""
	}
	return r
}

func (r result) repeats(told result) bool {
	return r.reason == told.reason && r.message == told.message
}

func explain(why reason, t *target) string {
	switch {
	case why == reasonReleased && len(t.wishes) == 0:
		return "No field has the value of a Secret any more."
	case why == reasonRecovered:
		return "The fields have their values, without a write."
	}
	fields := make([]string, 0, len(t.wishes))
	for _, w := range t.wishes {
		fields = append(fields, w.path.String()+" from secret/"+w.secret+"/"+w.key)
	}
	return "Applied " + strings.Join(fields, ", ") + "."
}
