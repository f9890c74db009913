package workload

import (
	"time"

	"github.com/keyturn/keyturn/internal/reloader"
)

// Reading has the settings that determine how workloads are read. It is the same for all workloads of an actuator.
type Reading struct {
	// All is --roll-all.
	All bool
	// Reloader is --reloader: what Reloader's annotations name counts with every key, and names are compiled as Reloader compiles them.
	Reloader bool
	// Variables is strategy=env-vars of --reloader: with Reloader set, a roll writes Reloader's variables instead of its marker.
	Variables bool
	// Stores is --store-access.
	Stores StoreAccess
	// Owners are the kinds whose objects are rolled instead of the workloads that they control.
	Owners Owners
	// Unwatched are the kinds that are not watched, and that targets may control.
	Unwatched []string
	// Window is --window: when workloads without an annotation for it may be rolled.
	Window Windows
	// MinInterval is --min-interval: the shortest time between two rolls of a workload without an annotation for it.
	MinInterval time.Duration
	// MaxRollsPerHour is --max-rolls-per-hour: how often a workload without an annotation for it may be rolled. Zero means no limit.
	MaxRollsPerHour int
	// InPlace is --reload-in-place: AnnotationReload counts.
	InPlace bool
	// Bake is --canary: how long the pods of a workload that is rolled first must stay ready if it has no annotation for it.
	Bake time.Duration
	// Keys are the keys of Reloader's annotations. Zero means Reloader's defaults.
	Keys reloader.Annotations
}

// keys returns the keys of Reloader's annotations.
func (r Reading) keys() reloader.Annotations {
	if r.Keys == (reloader.Annotations{}) {
		return reloader.Default()
	}
	return r.Keys
}
