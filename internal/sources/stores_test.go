package sources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/tests/testkit"
)

// storesOf is the kind of the secrets in stores without a feed.
func storesOf(t *testing.T) *storeKind {
	t.Helper()
	pending := newPendingSources(time.Now)
	t.Cleanup(pending.shutDown)
	return &storeKind{sightings: newSightings(), restores: kinds.NewRestores(), ledger: newLedger(), ring: ringOf(t), pending: pending}
}

func TestASecretInAStoreIsQueuedUntilItIsOnTheStream(t *testing.T) {
	source := storePath.Source()
	s := storesOf(t)
	if !s.sight(written(7, "update", 1)) {
		t.Fatal("there is no room")
	}
	mustTake(t, s.pending, source)
	s.pending.done(source)
	found := s.assess(source, nil, queueEntry{})
	if !found.publish || found.change.Verb != events.VerbRotated || found.change.Fingerprint == "" || found.seen == nil {
		t.Fatalf("assessed as %+v", found)
	}
	found.change.Time = minute(2)
	s.ledger.set(source, mustLast(t, found.change))
	s.sightings.done(source, found.seen)
	if first := s.ledger.firstOf(storePath); !first.Equal(minute(2)) {
		t.Errorf("the first secret of the mount was seen at %s", first)
	}
	if found := s.assess(source, s.ledger.get(source), queueEntry{}); found.publish {
		t.Errorf("event %+v though nothing was seen", found.change)
	}

	// An observation of a state that the stream has is ignored, and later states are queued.
	if !s.sight(written(7, "update", 1)) || len(queuedIn(s.pending)) > 0 {
		t.Errorf("queued %v", queuedIn(s.pending))
	}
	if !s.sight(written(8, "update", 3)) || len(queuedIn(s.pending)) != 1 {
		t.Errorf("queued %v", queuedIn(s.pending))
	}
}

func TestALostEventOfAStoreIsPublishedAgain(t *testing.T) {
	s, source := storesOf(t), storePath.Source()
	s.sight(written(7, "update", 1))
	found := s.assess(source, nil, queueEntry{})
	published := found.change
	published.Time = minute(2)
	s.ledger.set(source, mustLast(t, published))
	s.sightings.done(source, found.seen)
	lost := lostBehind(s.ledger.get(source), 0)
	again := s.assess(source, lost, queueEntry{}).change
	again.Source, again.Cluster, published.Cluster = source, testCluster, testCluster
	testkit.WantEqual(t, "event", published, again, cmpopts.EquateEmpty())
	if _, err := again.Encode(); err != nil {
		t.Error(err)
	}
	// A later version goes on from the event that was lost.
	s.sight(written(8, "update", 3))
	if found := s.assess(source, lost, queueEntry{}); !found.publish || found.change.Store.Version != 8 || found.change.Previous != published.Fingerprint {
		t.Errorf("assessed as %+v", found)
	}
}

func TestTheClockOfAnotherWatcherIsNotAheadOfWhatIsReadAfterTheStart(t *testing.T) {
	source, first := storePath.Source(), storesOf(t)
	first.sight(written(7, "update", 10))
	change := first.assess(source, nil, queueEntry{}).change
	change.Cluster, change.Time = testCluster, minute(13)
	stored, err := change.Encode()
	testkit.Must(t, err)
	stored.Seq, stored.Time = 3, minute(13)
	reader, _ := readerOf(&stateOf{stored: []events.Stored{stored}})
	reader.now = func() time.Time { return minute(11) }
	if !reader.readAll(t.Context()) || !reader.ledger.get(source).Time().Equal(minute(11)) {
		t.Errorf("the ledger has %+v", reader.ledger.get(source))
	}
}

func TestTheKnownPathsAreThoseOfTheMountThatExist(t *testing.T) {
	s := storesOf(t)
	at := func(mount, path string) events.Source {
		return events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: mount, Path: path}.Source()
	}
	s.ledger.set(at("secret", "a"), lastOf(1, events.VerbRotated))
	s.ledger.set(at("secret", "gone"), lastOf(1, events.VerbDeleted))
	s.ledger.set(at("kv", "b"), lastOf(1, events.VerbRotated))
	s.ledger.set(testSource, lastOf(1, events.VerbObserved))
	testkit.WantEqual(t, "paths", []string{"a"}, s.knownPaths("bao", events.RootNamespace, "secret"))
}

func TestThereIsRoomForSoManySightings(t *testing.T) {
	s := newSightings()
	for range maxSightings {
		seen := written(7, "update", 1)
		seen.Path.Path += string(rune('a' + len(s.seen)))
		if !s.add(seen) {
			t.Fatalf("no room after %d", len(s.seen))
		}
	}
	if s.add(openbao.Observation{Path: storePath}) {
		t.Error("there is room for one more")
	}
}

func TestSightingsKeepTheLatestOfEachSecret(t *testing.T) {
	source := storePath.Source()
	behind, deleted := written(8, "", 5), written(7, "", 3)
	behind.At, deleted.State = minute(2), openbao.Deleted
	for _, tt := range []struct {
		name string
		seen []openbao.Observation
		want openbao.Observation
	}{
		{"the later version", []openbao.Observation{written(7, "update", 1), written(8, "update", 2)}, written(8, "update", 2)},
		{"the audit log has more details", []openbao.Observation{written(7, "update", 1), written(7, "", 2)}, written(7, "update", 1)},
		{"the later version, by a server whose clock is behind", []openbao.Observation{written(7, "update", 4), behind}, behind},
		{"the later state of one version", []openbao.Observation{written(7, "update", 1), deleted}, deleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSightings()
			for _, seen := range tt.seen {
				if !s.add(seen) {
					t.Fatal("there is no room")
				}
			}
			got := s.get(source)
			testkit.WantEqual(t, "kept", tt.want, *got)
			s.done(source, &openbao.Observation{})
			if s.get(source) == nil {
				t.Error("what was seen since is forgotten")
			}
			s.done(source, got)
			if s.get(source) != nil {
				t.Error("an observation is kept after it was done")
			}
		})
	}
}
