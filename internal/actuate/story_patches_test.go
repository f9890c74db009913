//go:build !race

package actuate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// storyRecord is what Keyturn has written on a workload, as its patches say.
type storyRecord struct {
	// record is the last one that it wrote, text the annotation with that, and reverted the one that counts rolls that were undone.
	record         map[string]workload.RolledFor
	text, reverted string
	// recorded counts the patches that wrote a record alone, and recordedNow those of who leads now. recordedBy is who wrote last.
	recorded, recordedNow, recordedBy int
	// rolledAt is when it was last rolled.
	rolledAt time.Duration
	// manifest is an earlier annotation that somebody has kept. It is empty if there was none.
	manifest string
	// foreign says that somebody else has replaced or removed the annotation since.
	foreign bool
	// sinceNews counts its rolls since one of its sources has changed, or the workload has otherwise than by a restore, or the leader.
	sinceNews int
	// shrunk has the entries that were replaced by earlier ones.
	shrunk []string
}

// storyRoll is a patch that has replaced pods, and what was known then of the sources that the workload wants.
type storyRoll struct {
	of       *storyWorkload
	at       time.Duration
	leader   int
	revision string
	// lacking are those of which pods may have read something else. again says that one was gone since the pods began, and flips that one has changed
	// since, or since it was recorded: who leads and has not seen them begin cannot know that they began after that.
	lacking []string
	// before has the workloads of lower waves that were to be rolled first.
	before       []string
	flips, again bool
	// contested says that somebody has restored the pod template: its pods may have what was rolled before that.
	contested bool
	// differs says that the record becomes another one in content.
	differs bool
	// unseen says that who leads has not seen the pods being replaced last. late says that somebody may have written the workload after the decision:
	// nobody could know then whether the roll was needed.
	unseen, late bool
	// undone says that a person has undone the last roll, and untold that what became of this one may have been lost.
	undone, untold bool
	// repetition counts the rolls of the workload before this one, if somebody has restored its pod template, since anything else has changed.
	repetition int
}

func (r *storyRoll) String() string {
	return fmt.Sprintf("%s, rolled to %s after %s by leader %d", r.of.name, r.revision, r.at.Round(time.Millisecond), r.leader)
}

// storyPatch is what a patch of Keyturn writes.
type storyPatch struct {
	record         map[string]workload.RolledFor
	text, reverted string
	// revision is empty if it rolls nothing.
	revision string
}

func storyPatchOf(body string) storyPatch {
	const own, pods = "/metadata/annotations/keyturn.dev~1", "/template/metadata/annotations/keyturn.dev~1"
	var p storyPatch
	for _, step := range stepsOf([]byte(body)) {
		text, isText := step.Value.(string)
		switch {
		case step.Op != "add" || !isText:
		case step.Path == own+"rolled":
			p.text, p.record = text, entriesIn(text)
		case step.Path == own+"reverted":
			p.reverted = text
		case strings.HasSuffix(step.Path, pods+"revision"):
			p.revision = text
		}
	}
	return p
}

// entriesIn returns the entries of a record, by source.
func entriesIn(record string) map[string]workload.RolledFor {
	var texts map[string]string
	if err := json.Unmarshal([]byte(record), &texts); err != nil {
		panic(err)
	}
	entries := make(map[string]workload.RolledFor, len(texts))
	for source, text := range texts {
		fingerprint, rest, _ := strings.Cut(text, "@")
		version, rest, _ := strings.Cut(rest, "/")
		uid, scope, _ := strings.Cut(rest, "#")
		entries[source] = workload.RolledFor{Fingerprint: fingerprint, Version: version, UID: uid, Scope: scope}
	}
	return entries
}

// take takes in a patch of a workload.
func (st *story) take(w *storyWorkload, patch write) {
	p := storyPatchOf(patch.body)
	st.compareRecords(w, p)
	if patch.rolls {
		roll := st.rollOf(w, p, patch.at)
		st.rolls, w.rolledAt = append(st.rolls, roll), roll.at
		if w.fought {
			roll.repetition = w.sinceNews
		}
		w.sinceNews++
		st.notef("  %s lacks %v and is rolled to %s", w.name, roll.lacking, p.revision)
		st.replacePods(w, storyTemplate{w.template.bare, p.revision}, true)
	} else {
		w.recorded++
		w.recordedNow++
		st.notef("  %s is recorded: %s", w.name, p.text)
	}
	for of, pair := range w.pairs {
		if entry := p.record[of.local]; entry != w.record[of.local] && !entry.IsOwed() {
			pair.recorded = contents{pair.heard: true, pair.now: true}
		}
	}
	w.record, w.text, w.reverted, w.recordedBy = p.record, p.text, p.reverted, st.leaders
	w.foreign = false
}

// compareRecords looks for entries that a patch replaces by earlier ones. A correction does that after somebody has reverted a roll, and so does a
// note that the workload waits.
func (st *story) compareRecords(w *storyWorkload, p storyPatch) {
	if w.recordedBy != st.leaders || p.reverted != w.reverted {
		return
	}
	for source, last := range w.record {
		entry, kept := p.record[source]
		if kept && !entry.IsOwed() && entry.UID == last.UID && events.Newer(last.Version, entry.Version) {
			w.shrunk = append(w.shrunk, fmt.Sprintf("%s after %s: %s was %s and becomes %s", w.name, st.elapsed(), source, last, entry))
		}
	}
}

// overtaken returns who of lower waves has to be rolled for what a patch rolls a workload for, and is not held up.
func (st *story) overtaken(w *storyWorkload, p storyPatch) []string {
	var names []string
	for _, of := range st.sourcesOf(w) {
		isCause := w.pairs[of].owed && p.record[of.local] != w.record[of.local]
		if !isCause || w.weak || w.slow || of.held || of.ignored {
			continue
		}
		for _, other := range st.workloads {
			pair := other.pairs[of]
			if pair != nil && pair.owed && st.wants(other, of) && !other.isHeldUp() && other.wave() < w.wave() {
				names = append(names, other.name)
			}
		}
	}
	return names
}

func (st *story) rollOf(w *storyWorkload, p storyPatch, at time.Time) *storyRoll {
	roll := &storyRoll{
		of: w, at: at.Sub(midnight), leader: st.leaders, revision: p.revision, lacking: st.lacking(w), before: st.overtaken(w, p),
		unseen: w.unseen, late: w.slow && at.Sub(w.written) <= 2*slowPatch,
		undone: w.undone, untold: st.silent || st.unanswered, contested: w.operated || w.fought || w.undone,
	}
	for _, of := range st.sourcesOf(w) {
		if !st.wants(w, of) {
			continue
		}
		pair := w.pairs[of]
		last, recorded := w.record[of.local]
		entry, isWritten := p.record[of.local]
		roll.flips = roll.flips || len(pair.since) > 1 || w.unseen && len(pair.recorded) > 1
		roll.again = roll.again || pair.gone
		roll.differs = roll.differs || isWritten && (!recorded || last.Fingerprint != entry.Fingerprint || last.UID != entry.UID)
	}
	return roll
}
