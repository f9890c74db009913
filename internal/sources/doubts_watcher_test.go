package sources

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

// twoWatchers has two watchers of one cluster. The second receives from the API server only what own has.
type twoWatchers struct {
	*bench
	second  *Watcher
	own     *bench
	stopOne func()
}

// newTwoWatchers starts both watchers with the Secrets shop/db and shop/old.
func newTwoWatchers(t *testing.T) *twoWatchers {
	t.Helper()
	db, old := secretOf("shop", "db", "u1", "1", "one"), secretOf("shop", "old", "u9", "2", "one")
	b := newBench(t, db, old)
	_, stopOne := b.startReady(b.options())
	apart := *b
	apart.client = fake.NewClientset(db.DeepCopy(), old.DeepCopy())
	second, stopTwo := b.startReady(apart.watchful())
	t.Cleanup(stopTwo)
	return &twoWatchers{bench: b, second: second, own: &apart, stopOne: stopOne}
}

// tell waits until the second watcher has read the last event of a Secret, and has assessed the Secret since: then it has doubts, or has none any
// more. It reads the whole stream once the newest event that it knows has been replaced, and queues the Secret some time after that.
func (b *twoWatchers) tell(name string) {
	b.Helper()
	uids := map[string]string{"db": "u1", "old": "u9", "later": "u4"}
	source := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name}
	b.eventually("the second watcher has read the stream", func() bool {
		stored, ok := b.last(source)
		if !ok {
			return false
		}
		if entry := b.second.ledger.get(source); entry != nil && entry.Seq == stored.Seq {
			return true
		}
		newest := b.second.ledger.holdings(b.second.options.Now(), b.second.informers.watches).last.Name
		if uid, ok := uids[newest]; ok && newest != name {
			b.version++
			b.update(secretOf("shop", newest, uid, strconv.Itoa(b.version), strconv.Itoa(b.version)))
		}
		return false
	})
	b.eventually("the second watcher has assessed it", func() bool {
		doubt, heard := b.doubt(source)
		return !heard || !doubt.at.IsZero()
	})
	<-b.second.pending.quiet()
}

// doubt returns the doubt of the second watcher about a source, and false if it has none.
func (b *twoWatchers) doubt(source events.Source) (doubt, bool) {
	b.second.ledger.mu.RLock()
	defer b.second.ledger.mu.RUnlock()
	if d := b.second.ledger.doubts[source]; d != nil {
		return *d, true
	}
	return doubt{}, false
}

// last returns the last event of a source on StreamChanges. It reports whether that is the last event of the history, which is written first.
func (b *twoWatchers) last(source events.Source) (events.Stored, bool) {
	b.Helper()
	stored, ok := b.lastOn(events.Subject(testCluster, source))
	if !ok {
		return events.Stored{}, false
	}
	change, err := stored.Change()
	must(b, err)
	verbs := b.verbs(source.Name)
	return stored, string(change.Verb) == verbs[len(verbs)-1]
}

// verbs returns the verbs of the events that were published for a source.
func (b *twoWatchers) verbs(name string) []string {
	b.Helper()
	var list []string
	for _, change := range b.changes() {
		if change.Source.Name == name {
			list = append(list, string(change.Verb))
		}
	}
	return list
}

func (b *twoWatchers) wantVerbs(name string, want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.verbs(name)); diff != "" {
		b.Errorf("events of %s (-want +got):\n%s", name, diff)
	}
}

func TestAWatcherThatHearsNothingDoesNotReportAsGoneWhatAnotherReportedAsNew(t *testing.T) {
	b := newTwoWatchers(t)
	defer b.stopOne()
	b.create(secretOf("shop", "new", "u2", "10", "x"))
	b.eventually("the creation is published", func() bool { return len(b.verbs("new")) == 1 })
	b.tell("new")
	b.wantVerbs("new", "changed")
	t.Run("nor once it hears of it", func(t *testing.T) {
		b.own.create(secretOf("shop", "new", "u2", "10", "x"))
		source := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "new"}
		b.eventually("it is cached", func() bool { return b.second.informers.cached.Lookup(source) != nil })
		b.eventually("it is compared", func() bool {
			_, heard := b.doubt(source)
			return !heard
		})
		<-b.second.pending.quiet()
		b.wantVerbs("new", "changed")
	})
}
