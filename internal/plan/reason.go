package plan

import (
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Action is what a decision does to the workload.
type Action int

// The actions.
const (
	// Skip leaves the workload unchanged.
	Skip Action = iota
	// Record annotates the workload with the content, without rolling it.
	Record
	// Roll changes the pod template, so that the pods are replaced.
	Roll
	// Hold postpones the decision. The event stays in flight.
	Hold
)

// String returns the action in lower case.
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

// Reason explains a decision: why a workload is rolled, recorded, held or skipped. String is used in metrics, spans, logs, outcomes
// and Kubernetes Events; Sentence is the form for people.
type Reason int

// The reasons, in the order in which Decide checks them.
const (
	// None means that there is no reason, such as nothing that holds a workload. It has no name and is never published.
	None Reason = iota
	// Unknown means that too little is known of the source or the workload to decide.
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

// audience is where a decision is reported, besides logs, metrics and traces.
type audience int

const (
	// nobody is for decisions that concern nobody, or that are superseded within moments.
	nobody audience = iota
	// history publishes an outcome.
	history
	// everybody publishes an outcome and a Kubernetes Event on the workload.
	everybody
)

type verdict struct {
	name     string
	action   Action
	audience audience
	sentence string
}

// verdicts defines the name, action, audience and sentence of each reason.
var verdicts = map[Reason]verdict{
	Unknown:         {"unknown", Skip, history, "nothing is known of the source"},
	NotOptedIn:      {"not-opted-in", Skip, nobody, "the workload's annotations do not ask to be rolled for this source"},
	Excluded:        {"excluded", Skip, nobody, "the workload's annotations exclude this source"},
	SourceIgnored:   {"source-ignored", Skip, history, "the source carries an ignore annotation"},
	PulledOnly:      {"pulled-only", Skip, nobody, "the source is only used to pull images, and pulls read it afresh"},
	SourceDeleted:   {"source-deleted", Skip, history, "the source was deleted; running pods keep what they have"},
	FirstSeen:       {"first-seen", Skip, nobody, "the source has not changed since it was first seen"},
	KeysNotConsumed: {"keys-not-consumed", Skip, history, "no key that the pods read has changed"},
	KeyMissing:      {"key-missing", Skip, everybody, "a key that the pods cannot start without is missing; the running ones are left alone"},
	Stale:           {"stale", Skip, history, "the workload was rolled for a later change of the source"},
	AlreadyRolled:   {"already-rolled", Skip, history, "the workload was rolled for this change"},
	SameContent:     {"same-content", Skip, history, "the workload was last rolled for this very content"},
	ChangedBack:     {"changed-back", Record, history, "the content is again what it was before the workload could be rolled"},
	PodsNewer:       {"pods-newer", Record, history, "the pods were made after the change, by a later change of the workload itself"},
	PodsWaited:      {"pods-waited", Record, history, "the pods could not start before the source was there"},
	Appeared:        {"appeared", Roll, everybody, "a source appeared that the pods can start without"},
	Changed:         {"content-changed", Roll, everybody, "content that the pods read has changed"},
	Busy:            {"busy", Hold, nobody, "the workload is being patched"},
	Limit:           {"limit-reached", Hold, everybody, "as many rollouts as max-rollouts allows are in progress"},
	PeerFailed:      {"peer-failed", Hold, everybody, "another workload failed to roll for the same change"},
	LowerWave:       {"lower-wave", Hold, everybody, "workloads of a lower wave are not done with the same change"},
	DryRun:          {"dry-run", Skip, history, "it would be rolled, but the actuator runs with --dry-run"},
	WorkloadGone:    {"workload-gone", Skip, history, "the workload was deleted"},
}

// String returns the name in kebab-case.
func (r Reason) String() string { return verdicts[r].name }

// Action returns the action that the reason leads to.
func (r Reason) Action() Action { return verdicts[r].action }

// Sentence returns the explanation for people, without a full stop.
func (r Reason) Sentence() string { return verdicts[r].sentence }

// Silent reports whether a decision with this reason publishes no outcome.
func (r Reason) Silent() bool { return verdicts[r].audience == nobody }

// Loud reports whether a decision with this reason also creates a Kubernetes Event.
func (r Reason) Loud() bool { return verdicts[r].audience == everybody }

// Reasons returns every reason except None, in the order of the constants.
func Reasons() []Reason { return slices.Sorted(maps.Keys(verdicts)) }

// IsWarning reports whether the reason of this name is a skip that creates a Kubernetes Event, which is then a warning.
func IsWarning(name string) bool {
	for _, v := range verdicts {
		if v.name == name {
			return v.action == Skip && v.audience == everybody
		}
	}
	return false
}

// Decision is what to do with one workload about one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is the workload's opt-in for the source.
	Want workload.Want
	// Keys are the changed keys that the pods read.
	Keys []string
	// Record is the source's entry in the workload's annotation after the action. Skip does not write it.
	Record workload.RolledFor
}
