package workload

import (
	"time"

	"github.com/keyturn/keyturn/internal/reloader"
)

// Reading contains the settings for reading workloads. All workloads of an actuator share them.
type Reading struct {
	// All is --roll-all.
	All bool
	// Reloader is --reloader: every key of a source in Reloader's annotations counts, and names are compiled as Reloader compiles them.
	Reloader bool
	// Variables is strategy=env-vars of --reloader: with Reloader, a roll writes Reloader's variables instead of its marker.
	Variables bool
	// Stores is --store-access.
	Stores StoreAccess
	// Owners are the kinds that are rolled instead of the workloads that they control.
	Owners Owners
	// Unwatched are the unwatched kinds that targets may control.
	Unwatched []string
	// Window is --window: the windows of workloads without an annotation.
	Window Windows
	// MinInterval is --min-interval: the shortest time between two rolls of a workload without an annotation.
	MinInterval time.Duration
	// MaxRollsPerHour is --max-rolls-per-hour for workloads without an annotation. Zero means no limit.
	MaxRollsPerHour int
	// InPlace is --reload-in-place: AnnotationReload counts.
	InPlace bool
	// Bake is --canary: how long the pods of a workload that is rolled first must stay ready, without an annotation.
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
