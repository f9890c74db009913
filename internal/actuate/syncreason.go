package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// syncReason is what became of an ExternalSecret that was to be synced for a change in a secret store. Its String is the
// label of the metric, the attribute of the span and of the log line, and the reason of the outcome event and of the
// Kubernetes Event; Sentence is the same for people.
type syncReason int

// What may become of it.
const (
	syncUnknown syncReason = iota
	syncDone
	syncNoChange
	syncCreatedOnce
	syncNoInterval
	syncGenerates
	syncDryRun
	syncSourceDeleted
	syncGone
	syncRefused
	syncTimedOut
	syncDenied
)

type syncVerdict struct {
	name string
	verb events.Verb
	// event is the reason of the Kubernetes Event, which is a warning. Empty: people are not told by one.
	event    string
	sentence string
}

// syncVerdicts is the one definition of what each reason is called, and of who is told what.
var syncVerdicts = map[syncReason]syncVerdict{
	syncUnknown:       {"unknown", events.VerbSkipped, "", "nothing is known of it"},
	syncDone:          {"synced", events.VerbCompleted, "", "the secret was read anew"},
	syncNoChange:      {"no-change", events.VerbSkipped, "", "the secret was read anew, and the Secret stays as it was"},
	syncCreatedOnce:   {"created-once", events.VerbSkipped, eventNotSynced, "the secret has changed, but by its refreshPolicy CreatedOnce it is never read again"},
	syncNoInterval:    {"no-refresh-interval", events.VerbSkipped, eventNotSynced, "the secret has changed, but with a refreshInterval of 0 it is never read again"},
	syncGenerates:     {"generator", events.VerbSkipped, eventNotSynced, "the secret has changed, but a sync would have a generator make another value too"},
	syncDryRun:        {"dry-run", events.VerbSkipped, "", "it would be synced, but the actuator runs with --dry-run"},
	syncSourceDeleted: {"source-deleted", events.VerbSkipped, "", "the secret was deleted, and cannot be read"},
	syncGone:          {"externalsecret-gone", events.VerbSkipped, "", "the ExternalSecret was deleted"},
	syncRefused:       {"sync-error", events.VerbFailed, eventSyncFailed, "the secret has changed, and External Secrets Operator cannot sync it"},
	syncTimedOut:      {"timed-out", events.VerbFailed, eventSyncFailed, "the secret has changed, and External Secrets Operator has not synced it in time"},
	syncDenied:        {events.ReasonPatchDenied, events.VerbFailed, eventSyncFailed, "the secret has changed, and the API server refuses the annotation that has it synced"},
}

// The reasons of Kubernetes Events about ExternalSecrets.
const (
	eventNotSynced  = "NotSynced"
	eventSyncFailed = "SyncFailed"
)

// String is the name in kebab-case.
func (r syncReason) String() string { return syncVerdicts[r].name }

// Sentence says it for people, without a full stop.
func (r syncReason) Sentence() string { return syncVerdicts[r].sentence }

// syncObstacles says what becomes of an ExternalSecret that is not to be told to sync.
var syncObstacles = map[externalsecret.Obstacle]syncReason{
	externalsecret.CreatedOnce: syncCreatedOnce,
	externalsecret.NoInterval:  syncNoInterval,
	externalsecret.Generates:   syncGenerates,
}

// refusal says why an ExternalSecret is not told to sync; syncUnknown where it is.
func refusal(es *externalsecret.ExternalSecret, dryRun bool) syncReason {
	if reason, ok := syncObstacles[es.Obstacle()]; ok {
		return reason
	}
	if dryRun {
		return syncDryRun
	}
	return syncUnknown
}
