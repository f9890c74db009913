package events

import "slices"

// Verb is the past tense in the type of an event: dev.keyturn.<kind>.<verb>.v1.
type Verb string

// The verbs of changes.
const (
	// VerbObserved means that a source exists that the stream did not know. It rolls no workload, unless it has Change.Since.
	VerbObserved Verb = "observed"
	// VerbChanged means that the content of a source has changed.
	VerbChanged Verb = "changed"
	// VerbDeleted means that a source was deleted. The stream drops this event, a tombstone, after 24 hours.
	VerbDeleted Verb = "deleted"
	// VerbRotated is VerbChanged for a secret in a store.
	VerbRotated Verb = "rotated"
	// VerbSynced means that an ExternalSecret was written to its Secret.
	VerbSynced Verb = "synced"
	// VerbIssued means that a Certificate was issued or renewed.
	VerbIssued Verb = "issued"
)

// The verbs of outcomes.
const (
	// VerbStarted means that the pod template of a workload was patched and its pods are being replaced.
	VerbStarted Verb = "started"
	// VerbCompleted means that the last pod of a rollout is ready.
	VerbCompleted Verb = "completed"
	// VerbFailed means that a rollout, or the patch that should have started it, failed for good. It is also a verb of
	// changes: an ExternalSecret could not be synced, or a Certificate could not be issued.
	VerbFailed Verb = "failed"
	// VerbSkipped means that a change does not affect a workload that depends on its source.
	VerbSkipped Verb = "skipped"
	// VerbHeld means that a workload waits before it is rolled.
	VerbHeld Verb = "held"
)

// VerbApplied is a verb of projections. It means that fields of a resource now have the values of Secrets, or no longer have them. The other verbs of
// projections are VerbSkipped, if a Secret or a key is missing, and VerbFailed.
const VerbApplied Verb = "applied"

// VerbClaimed is the verb of a Claim, and VerbWatched is the verb of a Watched.
const (
	VerbClaimed Verb = "claimed"
	VerbWatched Verb = "watched"
)

// verbs lists the verbs of each kind.
var verbs = map[Kind][]Verb{
	KindSecret:         {VerbObserved, VerbChanged, VerbDeleted},
	KindConfigMap:      {VerbObserved, VerbChanged, VerbDeleted},
	KindOpenBao:        {VerbObserved, VerbRotated, VerbDeleted},
	KindExternalSecret: {VerbObserved, VerbSynced, VerbFailed, VerbDeleted},
	KindCertificate:    {VerbObserved, VerbIssued, VerbFailed, VerbDeleted},

	KindSecretProviderClass: {VerbObserved, VerbChanged, VerbDeleted},

	KindRollout: {VerbStarted, VerbCompleted, VerbFailed, VerbSkipped, VerbHeld},
	KindCluster: {VerbClaimed, VerbWatched},

	KindProjection: {VerbApplied, VerbSkipped, VerbFailed},
}

// Verbs returns the verbs of all events, in order.
func Verbs() []Verb {
	var all []Verb
	for _, of := range verbs {
		all = append(all, of...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func hasVerb(kind Kind, verb Verb) bool { return slices.Contains(verbs[kind], verb) }
