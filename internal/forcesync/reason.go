package forcesync

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// reason is how a sync ended. It is the label of the metric, the attribute of the span and of the log line, and the reason of the outcome and
// of the Kubernetes Event.
type reason string

const (
	done          reason = "synced"
	noChange      reason = "no-change"
	createdOnce   reason = "created-once"
	noInterval    reason = "no-refresh-interval"
	generates     reason = "generator"
	dryRun        reason = "dry-run"
	sourceDeleted reason = "source-deleted"
	gone          reason = "externalsecret-gone"
	refused       reason = "sync-error"
	timedOut      reason = "timed-out"
	neverTried    reason = "never-tried"
	denied        reason = events.ReasonPatchDenied
)

// The reasons of Kubernetes Events about ExternalSecrets.
const (
	eventNotSynced  = "NotSynced"
	eventSyncFailed = "SyncFailed"
)

type verdict struct {
	verb events.Verb
	// event is the reason of the Kubernetes Event of type Warning. If empty, no Kubernetes Event is written.
	event string
	// sentence explains it to people, without a full stop.
	sentence string
}

// verdicts defines how each reason is reported.
var verdicts = map[reason]verdict{
	done:     {events.VerbCompleted, "", "the ExternalSecret was synced"},
	noChange: {events.VerbSkipped, "", "the ExternalSecret was synced, and what it writes did not change"},
	createdOnce: {
		events.VerbSkipped, eventNotSynced, "the secret in the store changed, but refreshPolicy CreatedOnce prevents another sync",
	},
	noInterval:    {events.VerbSkipped, eventNotSynced, "the secret in the store changed, but refreshInterval 0 prevents another sync"},
	generates:     {events.VerbSkipped, eventNotSynced, "the secret in the store changed, but a sync would also generate a new value"},
	dryRun:        {events.VerbSkipped, "", "the ExternalSecret would be synced, but the actuator runs with --dry-run"},
	sourceDeleted: {events.VerbSkipped, "", "the secret in the store was deleted and cannot be read"},
	gone:          {events.VerbSkipped, "", "the ExternalSecret was deleted"},
	refused:       {events.VerbFailed, eventSyncFailed, "the secret in the store changed, but External Secrets Operator cannot sync it"},
	timedOut: {
		events.VerbFailed, eventSyncFailed, "the secret in the store changed, but External Secrets Operator did not sync it in time",
	},
	neverTried: {
		events.VerbSkipped, "",
		"External Secrets Operator has not tried to sync the ExternalSecret yet, and reads the secret in the store when it does",
	},
	denied: {events.VerbFailed, eventSyncFailed, "the secret in the store changed, but the API server denies the force-sync annotation"},
}

// obstacles maps what prevents a forced sync of an ExternalSecret to the reason that is reported.
var obstacles = map[externalsecret.Obstacle]reason{
	externalsecret.CreatedOnce: createdOnce,
	externalsecret.NoInterval:  noInterval,
	externalsecret.Generates:   generates,
}

// refusal returns why an ExternalSecret must not be synced. ok is false if it may be.
func refusal(es *externalsecret.ExternalSecret, dry bool) (_ reason, ok bool) {
	if r, ok := obstacles[es.Obstacle()]; ok {
		return r, true
	}
	return dryRun, dry
}
