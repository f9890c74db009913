package workload

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

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
