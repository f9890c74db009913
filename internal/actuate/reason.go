package actuate

import "github.com/keyturn/keyturn/internal/events"

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
	ReasonUnknown Reason = iota
	ReasonNotOptedIn
	ReasonExcluded
	ReasonSourceIgnored
	ReasonPulledOnly
	ReasonSourceDeleted
	ReasonFirstSeen
	ReasonKeysNotConsumed
	ReasonKeyMissing
	ReasonStale
	ReasonAlreadyRolled
	ReasonSameContent
	ReasonChangedBack
	ReasonPodsNewer
	ReasonPodsWaited
	ReasonAppeared
	ReasonChanged
	ReasonBusy
	ReasonLimit
	ReasonPeerFailed
	ReasonLowerWave
	ReasonDryRun
	ReasonWorkloadGone
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
	ReasonUnknown:         {"unknown", Skip, onRecord, "nothing is known of the source"},
	ReasonNotOptedIn:      {"not-opted-in", Skip, quietly, "the workload's annotations do not ask to be rolled for this source"},
	ReasonExcluded:        {"excluded", Skip, quietly, "the workload's annotations exclude this source"},
	ReasonSourceIgnored:   {"source-ignored", Skip, onRecord, "the source carries an ignore annotation"},
	ReasonPulledOnly:      {"pulled-only", Skip, quietly, "the source is only used to pull images, and pulls read it afresh"},
	ReasonSourceDeleted:   {"source-deleted", Skip, onRecord, "the source was deleted; running pods keep what they have"},
	ReasonFirstSeen:       {"first-seen", Skip, quietly, "the source has not changed since it was first seen"},
	ReasonKeysNotConsumed: {"keys-not-consumed", Skip, onRecord, "no key that the pods read has changed"},
	ReasonKeyMissing:      {"key-missing", Skip, aloud, "a key that the pods cannot start without is missing; the running ones are left alone"},
	ReasonStale:           {"stale", Skip, onRecord, "the workload was rolled for a later change of the source"},
	ReasonAlreadyRolled:   {"already-rolled", Skip, onRecord, "the workload was rolled for this change"},
	ReasonSameContent:     {"same-content", Skip, onRecord, "the workload was last rolled for this very content"},
	ReasonChangedBack:     {"changed-back", Record, onRecord, "the content is again what it was before the workload could be rolled"},
	ReasonPodsNewer:       {"pods-newer", Record, onRecord, "the pods were made after the change, by a later change of the workload itself"},
	ReasonPodsWaited:      {"pods-waited", Record, onRecord, "the pods could not start before the source was there"},
	ReasonAppeared:        {"appeared", Roll, aloud, "a source appeared that the pods can start without"},
	ReasonChanged:         {"content-changed", Roll, aloud, "content that the pods read has changed"},
	ReasonBusy:            {"busy", Hold, quietly, "the workload is being patched"},
	ReasonLimit:           {"limit-reached", Hold, aloud, "as many rollouts as max-rollouts allows are in progress"},
	ReasonPeerFailed:      {"peer-failed", Hold, aloud, "another workload failed to roll for the same change"},
	ReasonLowerWave:       {"lower-wave", Hold, aloud, "workloads of a lower wave are not done with the same change"},
	ReasonDryRun:          {"dry-run", Skip, onRecord, "it would be rolled, but the actuator runs with --dry-run"},
	ReasonWorkloadGone:    {"workload-gone", Skip, onRecord, "the workload was deleted"},
}

// String is the name in kebab-case.
func (r Reason) String() string { return verdicts[r].name }

// Action is what the reason leads to.
func (r Reason) Action() Action { return verdicts[r].action }

// Sentence says it for people, without a full stop.
func (r Reason) Sentence() string { return verdicts[r].sentence }

// isWarning tells whether people are told of a skip of this name, by a warning.
func isWarning(reason string) bool {
	for _, v := range verdicts {
		if v.name == reason {
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
	Want Want
	// Keys are the keys that the event is about and the pods read.
	Keys []string
	// Record is what the workload's annotation says of the source once this is done; with Skip, what it would say.
	Record RolledFor
}
