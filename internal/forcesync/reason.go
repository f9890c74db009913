package forcesync

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// reason explains how a sync ended. Its String is the label of the metric, the attribute of the span and of the log line, and the reason
// of the outcome and of the Kubernetes Event. sentence explains it to people.
type reason int

const (
	unknown reason = iota
	done
	noChange
	createdOnce
	noInterval
	generates
	dryRun
	sourceDeleted
	gone
	refused
	timedOut
	neverTried
	denied
)

type verdict struct {
	name string
	verb events.Verb
	// event is the reason of the Kubernetes Event of type Warning. If empty, no Kubernetes Event is written.
	event    string
	sentence string
}

// verdicts defines each reason: its name, and how it is reported.
var verdicts = map[reason]verdict{
	unknown:  {"unknown", events.VerbSkipped, "", "nothing is known about the ExternalSecret"},
	done:     {"synced", events.VerbCompleted, "", "the ExternalSecret was synced"},
	noChange: {"no-change", events.VerbSkipped, "", "the ExternalSecret was synced, and what it writes did not change"},
	createdOnce: {
		"created-once", events.VerbSkipped, eventNotSynced,
		"the secret in the store changed, but refreshPolicy CreatedOnce prevents another sync",
	},
	noInterval: {
		"no-refresh-interval", events.VerbSkipped, eventNotSynced,
		"the secret in the store changed, but refreshInterval 0 prevents another sync",
	},
	generates: {
		"generator", events.VerbSkipped, eventNotSynced,
		"the secret in the store changed, but a sync would also generate a new value",
	},
	dryRun:        {"dry-run", events.VerbSkipped, "", "the ExternalSecret would be synced, but the actuator runs with --dry-run"},
	sourceDeleted: {"source-deleted", events.VerbSkipped, "", "the secret in the store was deleted and cannot be read"},
	gone:          {"externalsecret-gone", events.VerbSkipped, "", "the ExternalSecret was deleted"},
	refused: {
		"sync-error", events.VerbFailed, eventSyncFailed,
		"the secret in the store changed, but External Secrets Operator cannot sync it",
	},
	timedOut: {
		"timed-out", events.VerbFailed, eventSyncFailed,
		"the secret in the store changed, but External Secrets Operator did not sync it in time",
	},
	neverTried: {
		"never-tried", events.VerbSkipped, "",
		"External Secrets Operator has not tried to sync the ExternalSecret yet, and reads the secret in the store when it does",
	},
	denied: {
		events.ReasonPatchDenied, events.VerbFailed, eventSyncFailed,
		"the secret in the store changed, but the API server denies the force-sync annotation",
	},
}

// The reasons of Kubernetes Events about ExternalSecrets.
const (
	eventNotSynced  = "NotSynced"
	eventSyncFailed = "SyncFailed"
)

// String returns the name in kebab-case.
func (r reason) String() string { return verdicts[r].name }

// sentence returns the explanation for people, without a full stop.
func (r reason) sentence() string { return verdicts[r].sentence }

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
