package forcesync

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

type reason string // the result of a sync; each externalsecret.Obstacle is one, too

const (
	done          reason = "synced"
	noChange      reason = "no-change"
	dryRun        reason = "dry-run"
	sourceDeleted reason = "source-deleted"
	targetMissing reason = "target-missing"
	gone          reason = "externalsecret-gone"
	refused       reason = "sync-error"
	timedOut      reason = "timed-out"
	neverTried    reason = "never-tried"
	denied        reason = events.ReasonPatchDenied
)

// These are the reasons why an ExternalSecret was synced only after the lag of its store: an earlier sync might have rolled its readers.
const (
	onceForEngine   reason = "synced-once-engine"
	onceForTemplate reason = "synced-once-template"
)

// These are the reasons of Kubernetes Events about ExternalSecrets.
const eventNotSynced, eventSyncFailed, eventSyncedLate = "NotSynced", "SyncFailed", "SyncedLate"

// verdict defines how a reason is reported. An empty event means no Kubernetes Event. In the sentence, % stands for the changed source.
type verdict struct {
	verb            events.Verb
	event, sentence string
}

var verdicts = map[reason]verdict{
	done:          {events.VerbCompleted, "", "the ExternalSecret was synced"},
	noChange:      {events.VerbSkipped, "", "the ExternalSecret was synced, and what it writes did not change"},
	dryRun:        {events.VerbSkipped, "", "the ExternalSecret would be synced, but the actuator runs with --dry-run"},
	neverTried:    {events.VerbSkipped, "", "External Secrets Operator has not tried to sync the ExternalSecret yet, and reads % when it does"},
	sourceDeleted: {events.VerbSkipped, "", "% was deleted, which is not hurried: the next refresh does what deletionPolicy says"},
	targetMissing: {events.VerbSkipped, eventNotSynced, "% changed, but there is no Secret, and creationPolicy Merge creates none"},
	gone:          {events.VerbSkipped, "", "the ExternalSecret was deleted"},
	refused:       {events.VerbFailed, eventSyncFailed, "% changed, but External Secrets Operator cannot sync it"},
	timedOut:      {events.VerbFailed, eventSyncFailed, "% changed, but External Secrets Operator did not sync it in time"},
	denied:        {events.VerbFailed, eventSyncFailed, "% changed, but the API server denies the force-sync annotation"},

	onceForEngine: {
		events.VerbCompleted, eventSyncedLate, "the ExternalSecret was synced only after the lag of its store, because it reads an engine other " +
			"than KV, which may have other data at each sync; an ExternalSecret of its own for what is in KV is synced at once, too",
	},
	onceForTemplate: {
		events.VerbCompleted, eventSyncedLate, "the ExternalSecret was synced only after the lag of its store, because % in its template has " +
			"another result at each sync; with the result in the store instead, it is synced at once, too",
	},

	reason(externalsecret.CreatedOnce): {events.VerbSkipped, eventNotSynced, "% changed, but refreshPolicy CreatedOnce prevents another sync"},
	reason(externalsecret.NoInterval):  {events.VerbSkipped, eventNotSynced, "% changed, but refreshInterval 0 prevents another sync"},
	reason(externalsecret.Generates):   {events.VerbSkipped, eventNotSynced, "% changed, but a sync would also generate a new value"},
	reason(externalsecret.NoTarget):    {events.VerbSkipped, eventNotSynced, "% changed, but with creationPolicy None nothing is written"},
	reason(externalsecret.Immutable): {
		events.VerbSkipped, eventNotSynced, "% changed, but the Secret is immutable: it has to be deleted to be created with the new content",
	},
	reason(externalsecret.Owned): {
		events.VerbSkipped, eventNotSynced, "% changed, but something else owns the Secret, which the operator therefore does not write",
	},
}
