package workload

import (
	"time"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/window"
)

// Reading is what it depends on how a workload is read, beside the workload. It is the same for all workloads of an actuator.
type Reading struct {
	// All is --roll-all.
	All bool
	// Reloader is --reloader: what Reloader's annotations name counts with every key, and names are compiled as Reloader compiles them.
	Reloader bool
	// Variables is --reloader-strategy=env-vars: a roll with Reloader writes its variables, and not its marker.
	Variables bool
	// Stores is --store-access.
	Stores StoreAccess
	// Owners are the kinds whose objects are rolled instead of the workloads that they are the controllers of.
	Owners Owners
	// Unwatched are the kinds that are not watched, and that targets may be the controllers of.
	Unwatched []string
	// Window is --window: when workloads may be rolled whose annotations do not say it.
	Window window.Windows
	// MinInterval is --min-interval: the time between two rolls of a workload whose annotations do not say it.
	MinInterval time.Duration
	// MaxRollsPerHour is --max-rolls-per-hour: how often a workload may be rolled whose annotations do not say it. Zero: any number of times.
	MaxRollsPerHour int
	// InPlace is --reload-in-place: AnnotationReload counts.
	InPlace bool
	// Bake is --bake: how long the pods of a workload that goes first must stay ready whose annotations do not say it.
	Bake time.Duration
	// Keys are the keys of Reloader's annotations. Zero: those that Reloader has without flags.
	Keys annotations.Reloader
}

// keys returns the keys of Reloader's annotations.
func (r Reading) keys() annotations.Reloader {
	if r.Keys == (annotations.Reloader{}) {
		return annotations.Default()
	}
	return r.Keys
}
