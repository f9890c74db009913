package plan

import (
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Action is what a decision has done to the workload.
type Action int

// The actions.
const (
	// Skip leaves the workload as it is.
	Skip Action = iota
	// Record writes down that the workload has the content, and does not roll it.
	Record
	// Roll changes the pod template, so that the pods are replaced.
	Roll
	// Hold leaves the workload for later, and the event on the stream.
	Hold
)

// String is the word for it in texts.
func (a Action) String() string {
	switch a {
	case Record:
		return "record"
	case Roll:
		return "roll"
	case Hold:
		return "hold"
	default:
		return "skip"
	}
}

// Reason is why a change does to a workload what it does. Its String is the label of the metric, the attribute of the span
// and of the log line, and the reason of the outcome event and of the Kubernetes Event; Sentence is the same for people.
type Reason int

// The reasons, by the order in which plan asks.
const (
	// None is no reason, as where nothing stands in the way of a roll. It has no name and is never told.
	None Reason = iota
	// Unknown is of a source, or a workload, of which too little is known to decide.
	Unknown
	NotOptedIn
	Excluded
	SourceIgnored
	PulledOnly
	SourceDeleted
	FirstSeen
	KeysNotConsumed
	KeyMissing
	Stale
	AlreadyRolled
	SameContent
	ChangedBack
	PodsNewer
	PodsWaited
	Appeared
	Changed
	Busy
	Limit
	PeerFailed
	LowerWave
	DryRun
	WorkloadGone
)

// telling is who is told of a decision. In the log, the metric and the trace every decision is.
type telling int

const (
	// quietly tells nobody else: what it is about concerns nobody, or is over in a moment.
	quietly telling = iota
	// onRecord makes an outcome, which HISTORY keeps.
	onRecord
	// aloud makes an outcome and a Kubernetes Event at the workload.
	aloud
)

type verdict struct {
	name     string
	action   Action
	telling  telling
	sentence string
}

// verdicts is the one definition of what each reason is called, does and says, and to whom.
var verdicts = map[Reason]verdict{
	Unknown:         {"unknown", Skip, onRecord, "nothing is known of the source"},
	NotOptedIn:      {"not-opted-in", Skip, quietly, "the workload's annotations do not ask to be rolled for this source"},
	Excluded:        {"excluded", Skip, quietly, "the workload's annotations exclude this source"},
	SourceIgnored:   {"source-ignored", Skip, onRecord, "the source carries an ignore annotation"},
	PulledOnly:      {"pulled-only", Skip, quietly, "the source is only used to pull images, and pulls read it afresh"},
	SourceDeleted:   {"source-deleted", Skip, onRecord, "the source was deleted; running pods keep what they have"},
	FirstSeen:       {"first-seen", Skip, quietly, "the source has not changed since it was first seen"},
	KeysNotConsumed: {"keys-not-consumed", Skip, onRecord, "no key that the pods read has changed"},
	KeyMissing:      {"key-missing", Skip, aloud, "a key that the pods cannot start without is missing; the running ones are left alone"},
	Stale:           {"stale", Skip, onRecord, "the workload was rolled for a later change of the source"},
	AlreadyRolled:   {"already-rolled", Skip, onRecord, "the workload was rolled for this change"},
	SameContent:     {"same-content", Skip, onRecord, "the workload was last rolled for this very content"},
	ChangedBack:     {"changed-back", Record, onRecord, "the content is again what it was before the workload could be rolled"},
	PodsNewer:       {"pods-newer", Record, onRecord, "the pods were made after the change, by a later change of the workload itself"},
	PodsWaited:      {"pods-waited", Record, onRecord, "the pods could not start before the source was there"},
	Appeared:        {"appeared", Roll, aloud, "a source appeared that the pods can start without"},
	Changed:         {"content-changed", Roll, aloud, "content that the pods read has changed"},
	Busy:            {"busy", Hold, quietly, "the workload is being patched"},
	Limit:           {"limit-reached", Hold, aloud, "as many rollouts as max-rollouts allows are in progress"},
	PeerFailed:      {"peer-failed", Hold, aloud, "another workload failed to roll for the same change"},
	LowerWave:       {"lower-wave", Hold, aloud, "workloads of a lower wave are not done with the same change"},
	DryRun:          {"dry-run", Skip, onRecord, "it would be rolled, but the actuator runs with --dry-run"},
	WorkloadGone:    {"workload-gone", Skip, onRecord, "the workload was deleted"},
}

// String is the name in kebab-case.
func (r Reason) String() string { return verdicts[r].name }

// Action is what the reason leads to.
func (r Reason) Action() Action { return verdicts[r].action }

// Sentence says it for people, without a full stop.
func (r Reason) Sentence() string { return verdicts[r].sentence }

// Silent reports whether a decision with this reason makes no outcome.
func (r Reason) Silent() bool { return verdicts[r].telling == quietly }

// Loud reports whether a decision with this reason makes a Kubernetes Event beside its outcome.
func (r Reason) Loud() bool { return verdicts[r].telling == aloud }

// Reasons lists every reason, in the order in which they are asked.
func Reasons() []Reason { return slices.Sorted(maps.Keys(verdicts)) }

// IsWarning reports whether a skip for the reason of this name makes a Kubernetes Event, which is then a warning.
func IsWarning(name string) bool {
	for _, v := range verdicts {
		if v.name == name {
			return v.action == Skip && v.telling == aloud
		}
	}
	return false
}

// Decision is what is to be done at one workload about one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is what the workload's annotations say of the source.
	Want workload.Want
	// Keys are the keys that the event is about and the pods read.
	Keys []string
	// Record is what the workload's annotation says of the source once this is done; with Skip, what it would say.
	Record workload.RolledFor
}
