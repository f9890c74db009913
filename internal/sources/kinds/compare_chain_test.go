package kinds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// life is a source that changes at random, and what its events must report.
type life struct {
	*testing.T
	random  *rand.Rand
	version int

	// uid, data and ring are the current object and the keys of the watcher. Data is nil if the object is gone.
	uid  int
	data content
	ring []byte

	// stream is the last event, as decoded. It is nil before the first.
	stream *LastEvent
	// said is the content in the last event, also of a deleted object, and keyed is the key of its fingerprints.
	said    content
	keyed   byte
	deleted bool
	// Object is the uid and the resourceVersion in the last event.
	object string
	// changedAt is when each key last changed, and under "" when any of them did.
	changedAt map[string]string
	// createdAt is when the source was created, if the watcher saw that.
	createdAt string

	log []string
}

var (
	lifeKeys   = []string{"a", "b", "c", "d"}
	lifeValues = []string{"", "1", "2"}
)

// step changes the source, or the key file of the watcher.
func (l *life) step() {
	l.version += 1 + l.random.IntN(3)
	switch n := l.random.IntN(20); {
	case l.data == nil:
		l.uid++
		l.data = content{}
		if l.said != nil && l.random.IntN(2) == 0 {
			l.data = maps.Clone(l.said)
		}
	case n < 9:
		l.data = maps.Clone(l.data)
		l.data[lifeKeys[l.random.IntN(len(lifeKeys))]] = lifeValues[l.random.IntN(len(lifeValues))]
	case n < 12:
		l.data = maps.Clone(l.data)
		delete(l.data, lifeKeys[l.random.IntN(len(lifeKeys))])
	case n < 14:
		l.data = nil
	case n < 15:
		l.ring = append([]byte{l.ring[0] + 1}, l.ring...)
	case n < 16:
		l.ring = l.ring[:1]
	default:
		// Only metadata is written: only the resourceVersion changes.
	}
	l.log = append(l.log, fmt.Sprintf("%d: uid %d, data %q, keys %v", l.version, l.uid, l.data, l.ring))
}

// look lets the watcher see the source, and checks the event.
func (l *life) look() {
	l.Helper()
	var now *Object
	if l.data != nil {
		now = objectOf(keyringOf(l.ring...), "uid-"+strconv.Itoa(l.uid), l.version, l.data)
	}
	if now != nil {
		kept := settle(now, l.stream).object(testSource)
		if diff := cmp.Diff(now, kept, everyField); diff != "" {
			l.fatalf("as it is kept it has changed (-want +got):\n%s", diff)
		}
		now = kept
	}
	// Whether the watcher sees the creation is random, but the creation itself is not.
	created := l.stream == nil && l.random.IntN(2) == 0
	change, worthSaying := compare(l.stream, now, created)
	verb := events.Verb("")
	if worthSaying {
		verb = change.Verb
		l.log = append(l.log, "  "+told(change))
	}
	if want := l.expect(now, created); verb != want {
		l.fatalf("the event is %q, want %q", verb, want)
	}
	if !worthSaying {
		return
	}
	l.check(change)
	l.publish(change)
	if again, worthSaying := compare(l.stream, now, created); worthSaying {
		l.fatalf("seen again it is %s", told(again))
	}
}

// expect returns the verb of the event that the current state must cause, and records what the event reports.
func (l *life) expect(now *Object, created bool) events.Verb {
	version := strconv.Itoa(l.version)
	if now == nil {
		if l.stream == nil || l.deleted {
			return ""
		}
		l.deleted = true
		return events.VerbDeleted
	}
	object := string(now.UID) + "/" + now.ResourceVersion
	wasDeleted, known := l.deleted, l.stream != nil
	comparable := slices.Contains(l.ring, l.keyed)
	same := known && comparable && maps.Equal(l.said, l.data) || known && !comparable && !wasDeleted && object == l.object
	if same && !wasDeleted {
		return ""
	}
	said := l.said
	l.said, l.keyed, l.deleted, l.object = l.data, l.ring[0], false, object
	switch {
	case same, !known && !created:
		return events.VerbObserved
	case !known:
		// The keys of a source that appears have not changed: see events.Change.
		l.changedAt[""], l.createdAt = version, version
		return events.VerbChanged
	default:
		l.changedAt[""] = version
		for _, name := range lifeKeys {
			before, was := said[name]
			after, is := l.data[name]
			if was != is || before != after || is && !comparable {
				l.changedAt[name] = version
			}
		}
		return events.VerbChanged
	}
}

// check compares the times at which the keys changed according to an event with the true ones.
func (l *life) check(change events.Change) {
	l.Helper()
	got := map[string]string{}
	if change.ChangedAt != "" {
		got[""] = change.ChangedAt
	}
	for name, k := range change.Keys {
		if k.ChangedAt != "" {
			got[name] = k.ChangedAt
		}
		if _, is := l.said[name]; is != (k.Fingerprint != "") {
			l.fatalf("key %s: there is %t, it has the fingerprint %q", name, is, k.Fingerprint)
		}
	}
	for name := range l.said {
		if _, listed := change.Keys[name]; !listed {
			l.fatalf("key %s is not listed", name)
		}
	}
	if change.CreatedAt != l.createdAt {
		l.fatalf("it was created at %q, want %q", change.CreatedAt, l.createdAt)
	}
	if diff := cmp.Diff(l.changedAt, got); diff != "" {
		l.fatalf("last changes (-want +got):\n%s", diff)
	}
}

// publish puts the event on the stream, through its wire format.
func (l *life) publish(change events.Change) {
	l.Helper()
	change.Cluster, change.Source, change.Time = "test", testSource, time.Unix(1e9, 0).UTC()
	encoded, err := change.Encode()
	if err != nil {
		l.fatalf("an event that cannot be written: %v", err)
	}
	read, err := encoded.Change()
	if err != nil {
		l.fatalf("an event that cannot be read: %v", err)
	}
	l.stream = mustLast(l, read)
}

func (l *life) fatalf(format string, args ...any) {
	l.Helper()
	for _, line := range l.log {
		l.Log(line)
	}
	l.Fatalf(format, args...)
}

// Whatever happens to a source, and however much of it the watcher misses: no event says changed if the content did not change, every difference
// leads to an event, and each event reports for every key, including removed ones, when it was last seen to change.
func TestEveryChainOfEventsTellsWhenEachKeyChanged(t *testing.T) {
	for seed := range uint64(200) {
		l := &life{
			T: t, random: rand.New(rand.NewPCG(seed, 1)), version: 90, ring: []byte{1}, keyed: 1,
			changedAt: make(map[string]string), log: []string{fmt.Sprintf("seed %d", seed)},
		}
		for range 60 {
			l.step()
			if l.random.IntN(3) > 0 {
				l.look()
			}
		}
		l.look()
	}
}
