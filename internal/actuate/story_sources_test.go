//go:build !race

package actuate_test

import (
	"maps"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// storySource is a source of a story.
type storySource struct {
	// name is that in the scene, and local that in its namespace: "office/secret/db" and "secret/db".
	name, local, namespace string
	// data is what it has, nil if it does not exist, and last what it had when it last existed.
	data, last map[string]string
	// ignored and held say what its annotations ask for.
	ignored, held bool
	// earlier are events of it that later ones have superseded.
	earlier []events.Change
}

func newStorySource(name string) *storySource {
	of := sourceNamed(name)
	return &storySource{name: name, local: of.String(), namespace: of.Namespace}
}

// how returns what its annotations add to an event of it.
func (of *storySource) how() []func(*events.Change) {
	var how []func(*events.Change)
	if of.ignored {
		how = append(how, asIgnored)
	}
	if of.held {
		how = append(how, sourceHeld("moving"))
	}
	return how
}

// existing returns a source that exists, nil if there is none.
func (st *story) existing() *storySource {
	there := slices.DeleteFunc(slices.Clone(st.sources), func(of *storySource) bool { return of.data == nil })
	if len(there) == 0 {
		return nil
	}
	return oneOf(st, there...)
}

// toExisting does something to a source that exists. It returns false if there is none.
func (st *story) toExisting(do func(*storySource)) bool {
	of := st.existing()
	if of != nil {
		do(of)
	}
	return of != nil
}

// becomes gives a source another content, nil if it is deleted.
func (st *story) becomes(of *storySource, data map[string]string) {
	st.notef("%s is %v", of.name, data)
	if before := st.of(of.name).published; before.UID != "" && before.Verb != events.VerbDeleted {
		of.earlier = append(of.earlier, before)
	}
	of.data = data
	if data == nil {
		st.erase(of.name)
	} else {
		of.last = data
		st.publish(of.name, data, of.how()...)
	}
	st.spread(of)
	st.hear(of)
}

// annotate publishes what the annotations of a source that exists ask for now.
func (st *story) annotate(of *storySource) {
	st.notef("%s is ignored: %t, on hold: %t", of.name, of.ignored, of.held)
	st.mark(of.name, of.how()...)
	st.hear(of)
}

// spread takes in what pods read that start from now on.
func (st *story) spread(of *storySource) {
	for _, w := range st.workloads {
		pair := w.pairs[of]
		if pair == nil {
			continue
		}
		now := w.content(of)
		pair.now, pair.isFresh = now, !pair.seen[now]
		pair.seen[now], pair.since[now], pair.recorded[now] = true, true, true
		pair.gone = pair.gone || now == contentAbsent
		if w.stalled {
			w.had[w.template][of][now] = true // Its new pods crash, and begin again.
		}
	}
}

// hear takes in what an event of a source means to the workloads.
func (st *story) hear(of *storySource) {
	for _, w := range st.workloads {
		if pair := w.pairs[of]; pair != nil {
			w.events++
			w.sinceNews = 0 // The version of what was created changes with any of its keys.
			st.hearOf(w, of, pair)
		}
	}
	st.look()
}

func (st *story) hearOf(w *storyWorkload, of *storySource, pair *storyPair) {
	before, now, isFresh := pair.heard, pair.now, pair.isFresh
	pair.heard, pair.isFresh = now, false
	isWanted := st.wants(w, of) && !of.ignored
	if isWanted && now != before {
		w.undone = false
	}
	switch {
	case !isWanted:
		pair.forget()
	case now == before:
	case now == contentAbsent, now == contentMissing:
		pair.forget() // Running pods keep what they have.
	case before == contentAbsent && (!w.isOptional(of) || st.options.RollOnCreate == plan.CreateNever):
		pair.forget() // They may have waited for it.
	case before == contentAbsent && st.isBackAsRecorded(w, of):
		pair.forget() // They may have it already.
	default:
		pair.owed = now != pair.born && (isFresh || pair.certain)
	}
}

// changeAll gives every key of every source a fresh value.
func (st *story) changeAll() {
	for _, w := range st.workloads {
		w.fought = false
	}
	for _, of := range st.sources {
		of.ignored = false
		value := st.freshValue()
		st.becomes(of, map[string]string{"password": value, "user": value})
	}
}

// These are the things that become of sources in a story.

func (st *story) sourceChanges() bool {
	of := oneOf(st, st.sources...)
	data := maps.Clone(of.data)
	if data == nil {
		return st.sourceComes()
	}
	value := st.freshValue()
	if st.random.IntN(5) < 2 {
		value = oneOf(st, "one", "two")
	}
	data[oneOf(st, "password", "user")] = value
	if maps.Equal(data, of.data) {
		return false
	}
	st.becomes(of, data)
	return true
}

// sourceFlips changes a source, and changes it back soon.
func (st *story) sourceFlips() bool {
	return st.toExisting(func(of *storySource) {
		was, data := of.data, maps.Clone(of.data)
		data["password"] = st.freshValue()
		st.becomes(of, data)
		st.wait(oneOf(st, 100*time.Millisecond, 700*time.Millisecond, 8*time.Second))
		st.becomes(of, was)
	})
}

// sourceIsSeenLate changes a source, and the watcher sees that later.
func (st *story) sourceIsSeenLate() bool {
	of := st.existing()
	if of == nil {
		return false
	}
	before, written, moment := st.of(of.name).published, time.Now(), st.reserve()
	data := maps.Clone(of.data)
	data["password"] = st.freshValue()
	st.notef("%s is %v, which is seen later", of.name, data)
	of.data, of.last = data, data
	st.spread(of)
	st.peopleGoOn()
	var change events.Change
	st.at(moment, func() { change = st.describe(of.name, data) })
	change.WrittenAt = written.Truncate(time.Second)
	st.notef("%s is seen", of.name)
	st.tell(of.name, data, compared(before, change), of.how()...)
	st.hear(of)
	return true
}

func (st *story) sourceGoes() bool {
	return st.toExisting(func(of *storySource) { st.becomes(of, nil) })
}

// sourceComes makes a source that does not exist, with what it last had or with something else.
func (st *story) sourceComes() bool {
	for _, of := range st.sources {
		if of.data != nil {
			continue
		}
		data := of.last
		if data == nil || st.onceIn(2) {
			data = map[string]string{"password": st.freshValue(), "user": "app"}
		}
		st.becomes(of, data)
		return true
	}
	return false
}

// sourceLosesKey removes a key that pods may need.
func (st *story) sourceLosesKey() bool {
	of := st.existing()
	if of == nil || len(of.data) < 2 {
		return false
	}
	data := maps.Clone(of.data)
	delete(data, oneOf(st, "password", "user"))
	st.becomes(of, data)
	return true
}

// sourceIsIgnored has a source ignored. That it is not ignored any more is no event.
func (st *story) sourceIsIgnored() bool {
	return st.toExisting(func(of *storySource) {
		of.ignored = !of.ignored
		if of.ignored {
			st.annotate(of)
		} else {
			st.notef("%s is not ignored any more", of.name)
		}
	})
}

func (st *story) sourceIsHeld() bool {
	return st.toExisting(func(of *storySource) {
		of.held = !of.held
		st.annotate(of)
	})
}

// comesLate publishes an earlier event of a source, as another watcher does that is behind, and then the last one again.
func (st *story) comesLate() bool {
	of := st.existing()
	if of == nil || len(of.earlier) == 0 {
		return false
	}
	earlier, last := oneOf(st, of.earlier...), st.of(of.name).published
	if earlier.UID != last.UID {
		return false
	}
	st.notef("an event of %s comes late: its version is %s, and was %s", of.name, earlier.ResourceVersion, last.ResourceVersion)
	st.send(earlier)
	st.wait(oneOf(st, 0, 3*time.Second))
	st.again(of.name)
	st.hear(of)
	return true
}
