package workload

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/window"
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
	Window window.Windows
	// MinInterval is --min-interval: the shortest time between two rolls of a workload without an annotation for it.
	MinInterval time.Duration
	// MaxRollsPerHour is --max-rolls-per-hour: how often a workload without an annotation for it may be rolled. Zero means no limit.
	MaxRollsPerHour int
	// InPlace is --reload-in-place: AnnotationReload counts.
	InPlace bool
	// Bake is --bake: how long the pods of a workload that is rolled first must stay ready if it has no annotation for it.
	Bake time.Duration
	// Keys are the keys of Reloader's annotations. Zero means Reloader's defaults.
	Keys annotations.Reloader
}

// keys returns the keys of Reloader's annotations.
func (r Reading) keys() annotations.Reloader {
	if r.Keys == (annotations.Reloader{}) {
		return annotations.Default()
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
	rolled, ours := readRecord(meta)
	w := &Workload{
		ID:         k.id(meta),
		Version:    meta.ResourceVersion,
		Created:    meta.CreationTimestamp.Time,
		Refs:       references(template),
		Rolled:     rolled,
		Revision:   k.strategy.revision(parts),
		Generation: meta.Generation,
		Progress:   parts.progress,
		stored:     storedOf(meta, template, reading),
		template:   digest(template),
		Reverted:   parseReverted(meta.Annotations[annotationReverted]),
		Last:       readLast(meta),
		UndoneBy:   undoneBy(meta),
		Patched:    newestWrite(meta, isOwn),
		Edited:     newestWrite(meta, isOther),
		Written:    newestWrite(meta, isAnyone),

		Suspended: parts.suspended,
		Deaf:      parts.deaf,
		StandsFor: parts.standsFor,
		ours:      ours,
		starts:    parts.starts,
		Aborted:   parts.aborted,
		restarts:  parts.restarts,
		restartAt: parts.restartAt,
		touched:   parts.touched,
		unaborted: parts.unaborted,
	}
	w.Manager, w.ManagerIsLast = lastManager(meta)
	w.bare = w.template
	if rolled := bare(template); rolled != template {
		w.bare = digest(rolled)
	}
	if parts.serving {
		w.ServingSince = w.Version
	}
	w.OptIn, w.Problems = parseOptIn(meta.Annotations, template.Annotations, reading)
	w.Problems = append(w.Problems, w.OptIn.grant(reading.Stores.of(meta.Namespace), w.Refs)...)
	if parts.deaf {
		w.OptIn, w.Problems = OptIn{}, nil
	}
	if parts.target != nil {
		w.readTarget(parts.target, reading)
	}
	if len(w.Refs) == maxReferences {
		w.Problems = append(w.Problems, &itemError{annotation: "pod template", problem: fmt.Sprintf(
			"it reads %d sources or more; those beyond the first, by kind and name, do not count", maxReferences)})
	}
	if owner, ok := reading.ownerOf(k, meta); ok && !parts.borrows {
		w.Owner = owner
		w = w.Owned()
	}
	if parts.borrows {
		w.Runs, w.observes, w.lent, w.OptIn = parts.runs, parts.observes, w.OptIn, OptIn{}
	}
	if reading.Reloader {
		w.Reloaded = newestWrite(meta, isReloader)
	}
	if reading.Reloader && k.Name == deployments.Name {
		w.readPause(reading.keys(), meta.Annotations)
	}
	w.readHold(meta.Annotations)
	w.readWindow(meta.Annotations, reading)
	w.readInterval(meta.Annotations, reading)
	w.readBreaker(meta.Annotations, reading)
	w.readBake(meta.Annotations, reading)
	w.readInPlace(meta.Annotations, parts, reading)
	if text, ok := meta.Annotations[annotationWave]; ok {
		wave, err := strconv.Atoi(text)
		if err != nil {
			w.Problems = append(w.Problems, &itemError{annotation: annotationWave, item: text, problem: "is not a whole number"})
		}
		w.Wave = wave
	}
	return w, true
}

// id returns how outcomes name an object. For a configured kind it includes the API version and resource, which readers could not know.
func (k Kind) id(meta *metav1.ObjectMeta) events.Workload {
	id := events.Workload{Kind: k.Name, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID)}
	if k.plural != "" {
		id.APIVersion, id.Resource = k.APIVersion, k.plural
	}
	return id
}
