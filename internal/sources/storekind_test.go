package sources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storesOf is the kind of the secrets in stores without a feed, with the sources that it has queued.
func storesOf() (*storeKind, *[]events.Source) {
	seen, queued := newSightings(), &[]events.Source{}
	return &storeKind{
		sightings: seen, restores: newRestores(), ring: keyringOf(1),
		ledger:  newLedger(map[events.Kind]func(events.Source, *lastEvent){events.KindOpenBao: seen.recorded}),
		noticed: func(source events.Source) { *queued = append(*queued, source) },
	}, queued
}

func TestWhatIsSeenInAStoreIsQueuedUntilItIsOnTheStream(t *testing.T) {
	s, queued := storesOf()
	source := storePath.Source()
	if !s.sight(written(7, "update", 1)) {
		t.Fatal("there is no room")
	}
	wantEqual(t, "queued", []events.Source{source}, *queued)
	change, ok := s.assess(source, nil, false)
	if !ok || change.Verb != events.VerbRotated || change.Fingerprint == "" {
		t.Fatalf("event %+v, %t", change, ok)
	}
	change.Time = minute(2)
	s.ledger.set(source, mustLast(t, change))
	if s.sightings.get(source) != nil {
		t.Error("it is kept though it is on the stream")
	}
	if first := s.sightings.firstOf(storePath); !first.Equal(minute(2)) {
		t.Errorf("the first secret of the mount was seen at %s", first)
	}
	if change, ok := s.assess(source, s.ledger.get(source), false); ok {
		t.Errorf("event %+v though nothing was seen", change)
	}

	// What the stream already has is ignored, and later states are queued.
	if !s.sight(written(7, "update", 1)) || len(*queued) != 1 {
		t.Errorf("queued %v", *queued)
	}
	if !s.sight(written(8, "update", 3)) || len(*queued) != 2 {
		t.Errorf("queued %v", *queued)
	}
	// A later observation is kept when an earlier version is recorded.
	s.ledger.set(source, mustLast(t, change))
	if s.sightings.get(source) == nil {
		t.Error("the later version is forgotten")
	}
}

func TestAnOlderVersionCountsWhenReadsAgreeOnItForLong(t *testing.T) {
	source := storePath.Source()
	older := func(read int) openbao.Observation { return polled(7, openbao.Live, 1, read) }
	tests := []struct {
		name string
		seen []openbao.Observation
		want string
	}{
		{name: "a server that lags behind once", seen: []openbao.Observation{older(20), polled(9, openbao.Live, 10, 21)}},
		{name: "a server that lags behind now and then", seen: []openbao.Observation{older(20), polled(9, openbao.Live, 10, 22), older(26)}},
		{name: "a server that lags behind for a while", seen: []openbao.Observation{older(20), older(22), older(24)}},
		{name: "another older version", seen: []openbao.Observation{older(20), polled(8, openbao.Live, 2, 26)}},
		{
			name: "a store that was restored", seen: []openbao.Observation{older(20), older(22), older(26)},
			want: "rotated 7/" + nanos(1) + "/restored/" + nanos(10),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, queued := storesOf()
			s.sight(written(9, "update", 10))
			change, _ := s.assess(source, nil, false)
			change.Time = minute(11)
			s.ledger.set(source, mustLast(t, change))
			*queued = nil
			for _, seen := range test.seen {
				s.sight(seen)
			}
			got := ""
			if change, ok := s.assess(source, s.ledger.get(source), false); ok {
				got = string(change.Verb) + " " + change.Store.Revision
				change.Time = minute(27)
				s.ledger.set(source, mustLast(t, change))
				if s.sightings.get(source) != nil {
					t.Error("it is kept though it is on the stream")
				}
			}
			if got != test.want || (len(*queued) > 0) != (test.want != "") {
				t.Errorf("event %q, want %q; queued %v", got, test.want, *queued)
			}
		})
	}
}

func TestARotationThatTheClocksOfAStoreMakeLookOldCountsWhenReadsAgreeOnIt(t *testing.T) {
	source := storePath.Source()
	for _, test := range []struct {
		name string
		seen []openbao.Observation
		want string
	}{
		{name: "the rotation of the last event", seen: []openbao.Observation{role(14, 12), role(14, 18)}},
		{name: "a server that lags behind now and then", seen: []openbao.Observation{role(2, 12), role(14, 14), role(2, 18)}},
		{name: "a server that lags behind for a while", seen: []openbao.Observation{role(2, 12), role(2, 16)}},
		{name: "a role of which no rotation is known", seen: []openbao.Observation{role(-1, 12), role(-1, 18)}},
		{
			name: "a rotation by a server whose clock is behind that of the one before", seen: []openbao.Observation{role(12, 13), role(12, 15), role(12, 18)},
			want: "rotated rotated/" + nanos(12) + "/restored/" + nanos(14),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := storesOf()
			s.sight(role(14, 11)) // The clock of this server is ahead.
			change, _ := s.assess(source, nil, false)
			change.Time = minute(11)
			s.ledger.set(source, mustLast(t, change))
			for _, seen := range test.seen {
				s.sight(seen)
			}
			got := ""
			if change, ok := s.assess(source, s.ledger.get(source), false); ok {
				got = string(change.Verb) + " " + change.Store.Revision
				change.Time = minute(19)
				s.ledger.set(source, mustLast(t, change))
				s.sight(role(12, 20))
				s.sight(role(12, 40))
			}
			if got != test.want || s.sightings.get(source) != nil {
				t.Errorf("event %q, want %q; left %+v", got, test.want, s.sightings.get(source))
			}
		})
	}
}

func TestWhatIsReadAfterTheStartIsLaterThanWhatAWatcherSawWhoseClockWasAhead(t *testing.T) {
	first, _ := storesOf()
	source := storePath.Source()
	first.sight(role(10, 10))
	seen, _ := first.assess(source, nil, false)
	seen.Cluster, seen.Time = testCluster, minute(13)
	event, err := seen.Event()
	must(t, err)
	s, queued := storesOf()
	reader, _ := readerOf(&stateOf{stored: []events.Stored{{Seq: 3, Subject: events.Subject(testCluster, source), Event: event}}})
	reader.ledger, reader.now = s.ledger, func() time.Time { return minute(11) }
	if !reader.readAll(t.Context()) {
		t.Fatal("the stream is not read")
	}
	s.sight(role(12, 12))
	if change, ok := s.assess(source, s.ledger.get(source), false); !ok || change.Verb != events.VerbRotated || len(*queued) != 1 {
		t.Errorf("event %+v, %t; queued %v", change, ok, *queued)
	}
}

func TestWhatAnotherWatcherHasSaidOfAStoreIsForgotten(t *testing.T) {
	s, _ := storesOf()
	source := storePath.Source()
	s.sight(written(7, "update", 1))
	change, _ := s.assess(source, nil, false)
	change.Time = minute(2)
	before := mustLast(t, change)
	if change, ok := s.assess(source, before, false); ok || s.sightings.get(source) != nil {
		t.Errorf("event %+v, %t", change, ok)
	}
}

func TestALostEventOfAStoreIsPublishedAgain(t *testing.T) {
	s, _ := storesOf()
	source := storePath.Source()
	s.sight(written(7, "update", 1))
	published, _ := s.assess(source, nil, false)
	published.Time = minute(2)
	s.ledger.set(source, mustLast(t, published))
	if change, ok := s.assess(source, s.ledger.get(source), false); ok {
		t.Errorf("event %+v of what the stream has", change)
	}
	lost := s.ledger.get(source).lostBehind(0)
	again, ok := s.assess(source, lost, false)
	again.Source, again.Cluster, published.Cluster = source, testCluster, testCluster
	if diff := cmp.Diff(published, again, cmpopts.EquateEmpty()); !ok || diff != "" {
		t.Errorf("event (-published +again), %t:\n%s", ok, diff)
	}
	if _, err := again.Event(); err != nil {
		t.Error(err)
	}
	// A later version goes on from what was lost.
	s.sight(written(8, "update", 3))
	if change, ok := s.assess(source, lost, false); !ok || change.Store.Version != 8 || change.Previous != published.Fingerprint {
		t.Errorf("event %+v, %t", change, ok)
	}
}

func TestTheKnownPathsAreThoseOfTheMountThatExist(t *testing.T) {
	s, _ := storesOf()
	at := func(mount, path string) events.Source {
		return events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: mount, Path: path}.Source()
	}
	s.ledger.set(at("secret", "a"), lastOf(1, events.VerbRotated))
	s.ledger.set(at("secret", "gone"), lastOf(1, events.VerbDeleted))
	s.ledger.set(at("kv", "b"), lastOf(1, events.VerbRotated))
	s.ledger.set(testSource, lastOf(1, events.VerbObserved))
	wantEqual(t, "paths", []string{"a"}, s.knownPaths("bao", events.RootNamespace, "secret"))
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
	tests := []struct {
		name string
		seen []openbao.Observation
		want openbao.Observation
	}{
		{"the later version", []openbao.Observation{written(7, "update", 1), written(8, "update", 2)}, written(8, "update", 2)},
		{"the later version, whichever came first", []openbao.Observation{written(8, "update", 2), written(7, "update", 1)}, written(8, "update", 2)},
		{"the later version, by a server whose clock is behind", []openbao.Observation{written(7, "update", 4), polled(8, openbao.Live, 2, 5)}, polled(8, openbao.Live, 2, 5)},
		{"the audit log has more details", []openbao.Observation{written(7, "update", 1), polled(7, openbao.Live, 1, 2)}, written(7, "update", 1)},
		{"the later state of one version", []openbao.Observation{written(7, "update", 1), polled(7, openbao.Deleted, 2, 3)}, polled(7, openbao.Deleted, 2, 3)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSightings()
			for _, seen := range tt.seen {
				if !s.add(seen) {
					t.Fatal("there is no room")
				}
			}
			got := s.get(source)
			wantEqual(t, "kept", tt.want, *got)
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
