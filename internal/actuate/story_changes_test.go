//go:build !race

package actuate_test

import (
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

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
	of := st.existing()
	if of == nil {
		return false
	}
	was, data := of.data, maps.Clone(of.data)
	data["password"] = st.freshValue()
	st.becomes(of, data)
	st.wait(oneOf(st, 100*time.Millisecond, 700*time.Millisecond, 8*time.Second))
	st.becomes(of, was)
	return true
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
	of := st.existing()
	if of == nil {
		return false
	}
	st.becomes(of, nil)
	return true
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
	of := st.existing()
	switch {
	case of == nil:
		return false
	case of.ignored:
		of.ignored = false
		st.notef("%s is not ignored any more", of.name)
	default:
		of.ignored = true
		st.annotate(of)
	}
	return true
}

func (st *story) sourceIsHeld() bool {
	of := st.existing()
	if of == nil {
		return false
	}
	of.held = !of.held
	st.annotate(of)
	return true
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
