package workload

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
)

// Reading has the settings that determine how workloads are read. It is the same for all workloads of an actuator.
type Reading struct {
	// All is --roll-all.
	All bool
	// Reloader is --reloader: what Reloader's annotations name counts with every key, and names are compiled as Reloader compiles them.
	Reloader bool
	// Variables is --reloader-strategy=env-vars: with Reloader set, a roll writes Reloader's variables instead of its marker.
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
	// Bake is --bake: how long the pods of a workload that is rolled first must stay ready if it has no annotation for it.
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

// annotationWave, on a workload, is its wave: a whole number, 0 by default.
const annotationWave = "keyturn.dev/wave"

// Read returns the snapshot of an object, and false if it is not of the kind. The snapshot shares nothing with the object.
func Read(k Kind, obj runtime.Object, reading Reading) (*Workload, bool) {
	parts, ok := k.read(obj)
	if !ok {
		return nil, false
	}
	meta, template := parts.meta, parts.template
	w := &Workload{
		object:    k.object(meta),
		wishes:    wishes{Refs: references(template)},
		record:    record{Revision: k.strategy.revision(parts), Last: readLast(meta)},
		Reverted:  parseRolled(meta.Annotations[annotationReverted]),
		stored:    storedOf(meta, template, reading.keys().PausedAt),
		kindState: parts.kindState,
	}
	w.Rolled, w.ours = readRecord(meta)
	w.Progress, w.template = parts.progress, digestOf(template)
	w.bare = w.template
	if rolled := bare(template); rolled != template {
		w.bare = digestOf(rolled)
	}
	if parts.serving {
		w.ServingSince = w.Version
	}
	if !w.Deaf {
		w.OptIn, w.Problems = parseOptIn(meta.Annotations, template.Annotations, reading)
		w.Problems = append(w.Problems, w.OptIn.grant(reading.Stores.of(meta.Namespace), w.Refs)...)
	}
	if w.target != nil {
		w.readTarget(parts, reading)
	}
	if len(w.Refs) == maxReferences {
		w.problem("pod template", "", fmt.Sprintf(
			"it reads %d sources or more; those beyond the first, by kind and name, do not count", maxReferences))
	}
	if parts.usesOtherTemplate {
		w.Runs, w.observes, w.passedOn, w.OptIn = parts.runs, parts.observes, w.OptIn, OptIn{}
	} else if owner, ok := reading.ownerOf(k, meta); ok {
		w.Owner = owner
		w = w.Owned()
	}
	if reading.Reloader {
		w.readReloader(meta, template, reading)
	}
	w.readTiming(meta.Annotations, reading)
	w.readInPlace(meta.Annotations, parts, reading)
	if text, ok := meta.Annotations[annotationWave]; ok {
		wave, err := strconv.Atoi(text)
		if err != nil {
			w.problem(annotationWave, text, "is not a whole number")
		}
		w.Wave = wave
	}
	return w, true
}

// object reads what is known of an object itself.
func (k Kind) object(meta *metav1.ObjectMeta) object {
	o := object{
		ID: k.id(meta), Version: meta.ResourceVersion, Created: meta.CreationTimestamp.Time, Generation: meta.Generation, UndoneBy: undoneBy(meta),
	}
	o.readWrites(meta)
	return o
}

// id returns how outcomes name an object. For a configured kind it includes the API version and resource, which readers could not know.
func (k Kind) id(meta *metav1.ObjectMeta) events.Workload {
	id := events.Workload{Kind: k.Name, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID)}
	if k.plural != "" {
		id.APIVersion, id.Resource = k.APIVersion, k.plural
	}
	return id
}
