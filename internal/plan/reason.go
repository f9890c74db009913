package plan

import (
	"maps"
	"slices"
	"strings"
)

// Action is the effect of a decision on a workload.
type Action int

// These are the actions.
const (
	// Skip leaves the workload as it is.
	Skip Action = iota
	// Record records that the workload has the content, without rolling it.
	Record
	// Roll replaces the pods.
	Roll
	// Hold leaves the workload for later.
	Hold
)

// String returns the name of the action in lower case.
func (a Action) String() string { return actions[a] }

var actions = [...]string{Skip: "skip", Record: "record", Roll: "roll", Hold: "hold"}

// Reason explains a decision: why a workload is rolled, recorded, held or skipped. Its String is the metric label, the attribute of spans and log
// lines, and the reason of outcomes and Kubernetes Events. Its Sentence is the text for users. Reasons that call for the same reaction share a String
// and differ in their Sentence.
type Reason int

// These are the reasons. The table verdicts defines them.
const (
	// None means that there is no reason, for example to hold a roll. It has no name and is never reported.
	None Reason = iota
	// Unknown means that explain finds no event of the source. The actuator decides only about events, so it never reports this.
	Unknown
	NotOptedIn
	Excluded
	SourceIgnored
	PulledOnly
	SourceDeleted
	FirstSeen
	KeysNotConsumed
	KeyMissing
	KeyAwaited
	AlreadyRolled
	SameContent
	ChangedBack
	BeforeOptIn
	// Undone is not a decision, but the outcome of a rollout that a person has undone.
	Undone
	Reverted
	PodsNewer
	PodsStarting
	PodsWaited
	CreationIgnored
	Appeared
	Deleted
	Changed
	RecordImpossible
	RecordCorrected
	Busy
	KindNotServed
	Limit
	PeerFailed
	CanaryFirst
	LowerWave
	OnHold
	SourceOnHold
	WindowClosed
	RolledRecently
	RolledTooOften
	Endless
	Pausing
	ReloaderFirst
	FilesPending
	DryRun
	Suspended
	Aborted
	WorkloadGone
)

// audience determines who receives a decision in addition to the log, the metrics and the trace, which contain every decision.
type audience int

const (
	// nobody means that the decision is not worth reporting, or will soon be obsolete.
	nobody audience = iota
	// history means that an outcome is published to the stream HISTORY.
	history
	// people means that a Kubernetes Event about the workload is written, too.
	people
)

type verdict struct {
	name     string
	action   Action
	audience audience
	sentence string
}

// verdicts defines the reasons: name, action, audience and sentence.
var verdicts = map[Reason]verdict{
	Unknown: {
		"unknown", Skip, nobody, "the stream has no event of the source: it does not exist, or the watcher leaves it out or cannot publish it",
	},
	NotOptedIn:      {"not-opted-in", Skip, nobody, "the workload's annotations do not opt in to this source"},
	Excluded:        {"not-opted-in", Skip, nobody, "the workload's annotations exclude this source"},
	SourceIgnored:   {"source-ignored", Skip, history, "the source has an ignore annotation"},
	PulledOnly:      {"not-opted-in", Skip, nobody, "the source is only used to pull images, and each pull reads it again"},
	SourceDeleted:   {"source-deleted", Skip, history, "the source was deleted; running pods keep what they have"},
	FirstSeen:       {"up-to-date", Skip, nobody, "the source has not changed since it was first seen"},
	KeysNotConsumed: {"keys-not-consumed", Skip, history, "no key that the pods read has changed"},
	KeyMissing:      {"key-missing", Skip, people, "a key that the pods cannot start without is missing; running pods are left alone"},
	KeyAwaited:      {"key-awaited", Skip, history, "the source has never had a key that the pods cannot start without; they wait for it"},
	AlreadyRolled:   {"up-to-date", Skip, nobody, "the workload was rolled for this change, or for a later one"},
	SameContent:     {"up-to-date", Skip, history, "the workload has the same content already"},
	ChangedBack:     {"up-to-date", Record, history, "the content reverted before the workload could be rolled"},
	BeforeOptIn:     {"before-opt-in", Skip, nobody, "the workload did not want the source yet when it changed, and is rolled for its next change"},
	Undone: {
		"undone", Skip, people, "a person has undone the rollout; the workload is left as it is, and the next change rolls it",
	},
	Reverted: {
		"reverted", Skip, people, "another field manager undid every rollout for this change, and must leave the keyturn.dev/* " +
			"annotations on the pod template alone; the next change rolls the workload again",
	},
	PodsNewer:    {"up-to-date", Record, history, "the pods were created after the change, by a later change of the workload itself"},
	PodsStarting: {"busy", Hold, nobody, "a later change of the workload itself is replacing the pods, and is not complete"},
	PodsWaited:   {"up-to-date", Record, history, "the pods could not start before the source existed and had the keys that they need"},
	CreationIgnored: {
		"creation-ignored", Record, history, "the source is new, and --roll-on-create=never leaves running pods as they are until its next change",
	},
	Appeared: {"appeared", Roll, people, "a source appeared that the pods can start without, or --roll-on-create is always"},
	Deleted:  {"deleted", Roll, people, "the source was deleted, and the pods can start without it"},
	Changed:  {"content-changed", Roll, people, "content that the pods read has changed"},
	RecordImpossible: {
		"record-impossible", Roll, people, "the workload's record names a later change than its writer can have seen, so it does not count; " +
			"find out who wrote it",
	},
	RecordCorrected: {
		"record-impossible", Record, people, "the pods have the content, but the workload's record named a later change than its writer can " +
			"have seen, and is corrected; find out who wrote it",
	},
	Busy: {"busy", Hold, nobody, "the workload is being patched"},
	KindNotServed: {
		"kind-not-served", Hold, history, "the API server does not serve its kind, so nobody knows whether it is there; it is dropped after a day",
	},
	Limit:          {"limit-reached", Hold, history, "as many rollouts as max-rollouts or the limit of the namespace allows are in progress"},
	PeerFailed:     {"peer-failed", Hold, people, "another workload failed to roll for the same change"},
	CanaryFirst:    {"canary-first", Hold, people, "another workload goes first with the same change, and this one follows once its pods are ready"},
	LowerWave:      {"lower-wave", Hold, people, "workloads of a lower wave are not finished with the same change"},
	OnHold:         {"on-hold", Hold, people, "somebody has put the workload on hold"},
	SourceOnHold:   {"on-hold", Hold, people, "somebody has put the source on hold"},
	WindowClosed:   {"window-closed", Hold, people, "no window is open in which the workload may be rolled"},
	RolledRecently: {"rolled-recently", Hold, history, "the min-interval after its last roll is not over"},
	RolledTooOften: {
		"rolled-too-often", Hold, people, "it was rolled as often as max-rolls-per-hour allows; find what changes its sources or undoes its " +
			"rollouts each time, or set keyturn.dev/roll-now to roll it once more",
	},
	Endless: {
		"rolled-too-often", Hold, people, "what it reads changes without end, so it is rolled ever more seldom, in the end once an hour; have its " +
			"writers leave it alone, or one of two, leave keys out with keyturn.dev/ignore-keys on the source, or set keyturn.dev/min-interval",
	},
	Pausing: {"pause-period", Hold, history, "the changes are collected until the pause-period after the first of them is over"},
	ReloaderFirst: {
		"reloader-first", Hold, nobody, "Reloader is rolling workloads, and is given the time to roll this one, too",
	},
	FilesPending: {
		"files-pending", Hold, history, "its pods are asked to reload their files once the kubelets have had the time to refresh them",
	},
	Suspended: {"suspended", Record, history, "the workload is suspended, and its next pods read the new content"},
	Aborted: {
		"rollout-aborted", Hold, people, "its own rollout was aborted, and a new pod template would override that; it rolls once someone has " +
			"retried, promoted or undone it",
	},
	DryRun:       {"dry-run", Skip, history, "it would be rolled, but the actuator runs with --dry-run"},
	WorkloadGone: {"workload-gone", Skip, history, "the workload was deleted"},
}

// String returns the name of the reason in kebab-case. Several reasons may share it.
func (r Reason) String() string { return verdicts[r].name }

// Action returns the effect of a decision with this reason.
func (r Reason) Action() Action { return verdicts[r].action }

// Sentence returns a text for users, without a period.
func (r Reason) Sentence() string { return verdicts[r].sentence }

// Silent reports whether decisions with this reason have no outcome.
func (r Reason) Silent() bool { return verdicts[r].audience == nobody }

// Reasons lists every reason, in the order of the constants.
func Reasons() []Reason { return slices.Sorted(maps.Keys(verdicts)) }

// Named returns the reason with a name whose sentence begins the message, else the first with the name, or None and false if there is none.
func Named(name, message string) (Reason, bool) {
	first := None
	for _, reason := range Reasons() {
		switch v := verdicts[reason]; {
		case v.name != name:
		case strings.HasPrefix(message, v.sentence):
			return reason, true
		case first == None:
			first = reason
		}
	}
	return first, first != None
}

// Loud reports whether decisions with this reason are written as Kubernetes Events, in addition to their outcomes.
func Loud(name string) bool {
	reason, _ := Named(name, "")
	return verdicts[reason].audience == people
}

// Waiting is the kind of event that ends a hold.
type Waiting int

const (
	// NotWaiting means that the reason holds nothing.
	NotWaiting Waiting = iota
	// ForPeople means a time that users have chosen, or an action of theirs.
	ForPeople
	// ForItself means a change of the workload itself: its patch, pods or kind, or a time.
	ForItself
	// ForSlot means a slot for a rollout.
	ForSlot
	// ForPeers means other workloads of the namespace.
	ForPeers
	// ForAny means any event in the namespace.
	ForAny
)

// waitings contains, for each reason to hold a workload, the kind of event that ends the hold.
var waitings = map[Reason]Waiting{
	Busy: ForItself, KindNotServed: ForItself, PodsStarting: ForItself, ReloaderFirst: ForItself,
	Limit:      ForSlot,
	PeerFailed: ForPeers, CanaryFirst: ForPeers, LowerWave: ForPeers,
	OnHold: ForPeople, SourceOnHold: ForPeople, WindowClosed: ForPeople, RolledRecently: ForPeople, RolledTooOften: ForPeople, Pausing: ForPeople,
	Endless:      ForPeople,
	FilesPending: ForAny, Aborted: ForAny,
}

// Waiting returns the kind of event that ends a hold with this reason.
func (r Reason) Waiting() Waiting { return waitings[r] }
