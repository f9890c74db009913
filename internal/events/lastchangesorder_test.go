package events

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streamLife is a stream whose sources change at random, and which loses what it has at times.
type streamLife struct {
	random *rand.Rand
	epoch  uint32
	// second is the clock, and version the newest resourceVersion. uids counts the objects.
	second, version, uids int
	stream, saved         streamState
	// put has everything that a Follower may have read, and last what is then known. torn are the sources whose last event cannot be read.
	put  []putEvent
	last map[Address]LastChange
	torn map[Address]bool
}

// streamState is the last event of each subject, and the sequence of the newest.
type streamState struct {
	seq    uint64
	events map[Address]LastChange
}

func (s streamState) clone() streamState {
	s.events = maps.Clone(s.events)
	return s
}

type putEvent struct {
	at Address
	c  LastChange
}

// lifeOrigins and lifeSources are what the stream is about: one path of a store has events of two clusters.
var (
	lifeOrigins = Origins{Cluster: testCluster, StoresFrom: []string{"hub"}}
	lifeSources = []Address{
		{testCluster, KindSecret, "shop", "a"},
		{testCluster, KindSecret, "shop", "b"},
		{testCluster, KindConfigMap, "bank", "c"},
		{testCluster, KindOpenBao, "", "bao/root/kv/d"},
		{"hub", KindOpenBao, "", "bao/root/kv/d"},
		{"hub", KindOpenBao, "", "bao/root/kv/e"},
	}
)

func newStreamLife(seed uint64) *streamLife {
	l := &streamLife{
		random: rand.New(rand.NewPCG(seed, 0)), epoch: 1, stream: streamState{events: make(map[Address]LastChange)},
		last: make(map[Address]LastChange), torn: make(map[Address]bool),
	}
	l.saved = l.stream.clone()
	return l
}

// step lets something happen.
func (l *streamLife) step() {
	l.second++
	at := lifeSources[l.random.IntN(len(lifeSources))]
	switch n := l.random.IntN(20); {
	case n < 9:
		l.change(at)
	case n < 11:
		l.delete(at)
	case n == 11: // Something that is no event is stored.
		l.torn[at] = true
		l.store(at, LastChange{})
	case n < 14: // A watcher publishes again what the stream has lost, or what it has.
		if last, ok := l.last[at]; ok {
			l.known(at, last)
		}
	case n == 14:
		l.saved = l.stream.clone()
	case n == 15:
		l.begin(l.saved.clone())
	case n == 16:
		l.begin(streamState{events: make(map[Address]LastChange)})
	case n < 19: // All is read again.
		l.begin(l.stream)
	default: // A message is removed.
		delete(l.stream.events, at)
	}
}

// change gives a source another content, or makes another object of its name.
func (l *streamLife) change(at Address) {
	l.version++
	c := l.last[at]
	if at.Kind == KindOpenBao {
		c.UID = "bao"
	} else if c.verb == 0 || c.Verb() == VerbDeleted || l.random.IntN(4) == 0 {
		l.uids++
		c.UID = "u" + strconv.Itoa(l.uids)
	}
	c.ResourceVersion = strconv.Itoa(l.version)
	c.ChangedAt, c.All, c.verb = c.ResourceVersion, Sum{byte(l.random.IntN(3))}, 2
	l.known(at, c)
}

func (l *streamLife) delete(at Address) {
	c, ok := l.last[at]
	if !ok || c.Verb() == VerbDeleted {
		return
	}
	if at.Kind == KindOpenBao {
		l.version++
		c.ResourceVersion = strconv.Itoa(l.version)
	}
	c.verb = 3
	l.known(at, c)
}

// known stores an event that can be read.
func (l *streamLife) known(at Address, c LastChange) {
	delete(l.torn, at)
	l.last[at] = l.store(at, c)
}

func (l *streamLife) store(at Address, c LastChange) LastChange {
	l.stream.seq++
	c.Seq, c.storedAt, c.Epoch = l.stream.seq, int64(l.second), l.epoch
	l.stream.events[at] = c
	l.put = append(l.put, putEvent{at, c})
	return c
}

// begin reads a stream as a new epoch.
func (l *streamLife) begin(stream streamState) {
	l.epoch++
	l.stream = stream
	for at, c := range l.stream.events {
		c.Epoch = l.epoch
		l.stream.events[at] = c
		l.put = append(l.put, putEvent{at, c})
		if last := l.last[at]; last.Seq == c.Seq && last.storedAt == c.storedAt {
			l.last[at] = c
		}
	}
}

// The state depends only on what was put: not on the order, on how often it was put, nor on how the epochs overlap.
func TestTheStateDoesNotDependOnTheOrderOfWhatIsPut(t *testing.T) {
	for seed := range uint64(300) {
		l := newStreamLife(seed)
		for range 80 {
			l.step()
		}
		want := make(map[Source]string)
		for _, at := range lifeSources {
			said, ok := l.last[at]
			other := at
			if other.Cluster = testCluster; at.Cluster == testCluster && at.Kind == KindOpenBao {
				other.Cluster = "hub"
			}
			if another, both := l.last[other]; both && CompareVersions(another.ResourceVersion, said.ResourceVersion) > 0 {
				said, ok = another, true
			}
			text := "unknown"
			if ok {
				text = describeLast(&said)
			}
			want[at.Source()] = text + fmt.Sprintf(", torn %t", l.torn[at] || l.torn[other])
		}
		for range 4 {
			state := NewLastChanges(lifeOrigins)
			put := append(slices.Clone(l.put), l.put[:l.random.IntN(len(l.put))]...)
			l.random.Shuffle(len(put), func(i, j int) { put[i], put[j] = put[j], put[i] })
			for _, p := range put {
				state.Put(p.at, &p.c)
			}
			got := make(map[Source]string)
			for _, at := range lifeSources {
				text := "unknown"
				if last, _ := state.last(at.Source()); last != nil {
					text = describeLast(last)
				}
				got[at.Source()] = text + fmt.Sprintf(", torn %t", state.IsUnreadable(at.Source()))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: state (-want +got):\n%s", seed, diff)
			}
		}
	}
}

func describeLast(c *LastChange) string {
	return fmt.Sprintf("%s %s/%s %x at %d of epoch %d, stored at %d", c.Verb(), c.UID, c.ResourceVersion, c.All[0], c.Seq, c.Epoch, c.storedAt)
}
