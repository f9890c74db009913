package bus

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// openFleet declares a stream that sources CHANGES of each cluster, as a hub does, and returns its reader.
func openFleet(t *testing.T, s *testServer, clusters ...string) *Reader {
	t.Helper()
	config := jetstream.StreamConfig{Name: "FLEET", AllowDirect: true, AllowMsgTTL: true}
	for _, cluster := range clusters {
		config.Sources = append(config.Sources, &jetstream.StreamSource{Name: events.StreamChanges, FilterSubject: events.ChangesRoot + cluster + ".>"})
	}
	createStream(t, s.jetstream(), config)
	r, err := OpenFleet(t.Context(), s.connect(), "FLEET")
	testkit.Must(t, err)
	return r
}

// membersOf returns the members that a reader finds.
func membersOf(t *testing.T, r *Reader) ([]Member, error) {
	t.Helper()
	return answer(t, func() ([]Member, error) { return r.Members(t.Context()) })
}

func TestAFleetIsReadLikeTheStreamsOfOneCluster(t *testing.T) {
	s := sharedServer(t)
	r := openFleet(t, s, testCluster, "prod-us")
	east, west := s.bus(), busOf(t, "prod-us", s.url())
	first := version("db", "1")
	seq := mustPublish(t, east, first, 0)
	second := version("db", "2")
	other := version("db", "1")
	other.Cluster = "prod-us"
	mustPublish(t, west, other, 0)
	mustTell(t, east, outcome())
	read := func(ctx context.Context, query HistoryQuery) (got []string, err error) {
		err = r.History(ctx, query, func(stored events.Stored) error {
			got = append(got, stored.Subject+" "+stored.ID())
			return stored.Err
		})
		return got, err
	}
	testkit.Await(t, "the fleet has all of both", func(ctx context.Context) bool {
		all, err := read(ctx, HistoryQuery{})
		return err == nil && len(all) == 3
	})
	// It is superseded on CHANGES, but not on the fleet's stream.
	mustPublish(t, east, second, seq)
	line := func(c events.Change) string { return events.Subject(c.Cluster, c.Source) + " " + c.ID() }
	testkit.Await(t, "the fleet has the change and the one before", func(ctx context.Context) bool {
		own, err := read(ctx, HistoryQuery{Clusters: []string{testCluster}, Kind: events.KindSecret})
		return err == nil && cmp.Equal(own, []string{line(first), line(second)})
	})
	others := readHistory(t, r, HistoryQuery{Clusters: []string{"prod-us"}})
	testkit.WantEqual(t, "the other cluster", []string{line(other)}, others)
	stored, err := lastOn(t, r, events.Subject(testCluster, second.Source))
	testkit.Must(t, err)
	if change, err := stored.Change(); err != nil || change.ID() != second.ID() {
		t.Errorf("the last change is %s, %v, want %s", change.ID(), err, second.ID())
	}
	var state map[string]int
	err = errorOf(t, func() error {
		state = make(map[string]int)
		return r.State(t.Context(), events.SourceFilters(testCluster), func(stored events.Stored) error {
			state[stored.Subject+" "+stored.ID()]++
			return stored.Err
		})
	})
	testkit.Must(t, err)
	testkit.WantEqual(t, "the state", map[string]int{line(second): 1}, state)
	if _, err := OpenFleet(t.Context(), s.connect(), "NOWHERE"); err == nil || err.Error() != "stream is not declared as required: NOWHERE does not exist" {
		t.Errorf("a stream that is not there: got %v", err)
	}
}

func TestTheMembersOfAFleet(t *testing.T) {
	s := sharedServer(t)
	r := openFleet(t, s, testCluster, "prod-us", "silent")
	east, west := s.bus(), busOf(t, "prod-us", s.url())
	var stored uint64
	arrived := func() {
		t.Helper()
		stored++
		testkit.Eventually(t, "it is in the fleet, before it is superseded", func() bool {
			info, err := r.history.Info(t.Context())
			return err == nil && info.State.Msgs == stored
		})
	}
	claimed := func(b *Bus, uid, replaces string) {
		t.Helper()
		mustClaim(t, b, uid, replaces)
		arrived()
	}
	claimed(east, "uid-one", "")
	claimed(east, "uid-two", "uid-one")
	claimed(west, "uid-three", "")
	// A cluster claims the name of another one, on a stream of its own.
	forged := events.Claim{Cluster: "prod-us", UID: "uid-four", Time: testTime}
	testkit.Must(t, errIn(s.jetstream().PublishMsg(t.Context(), messageWith(t, forged))))
	arrived()
	mustPublish(t, east, version("db", "1"), 0)
	arrived()
	want := []Member{
		{Cluster: testCluster, Last: testTime, UIDs: []string{"uid-two"}, Sourced: true, Reached: true},
		{Cluster: "prod-us", Last: testTime, UIDs: []string{"uid-three", "uid-four"}, Sourced: true, Reached: true},
		{Cluster: "silent", Sourced: true, Reached: true},
	}
	testkit.Eventually(t, "each source has been heard of", func() bool {
		info, err := r.history.Info(t.Context())
		return err == nil && !slices.ContainsFunc(info.Sources, func(source *jetstream.StreamSourceInfo) bool { return source.Active < 0 })
	})
	got, err := membersOf(t, r)
	testkit.Must(t, err)
	testkit.WantEqual(t, "members", want, got)
	// A reader of a cluster's own streams finds the claims on it.
	own, err := membersOf(t, &east.Reader)
	without := []Member{{Cluster: testCluster, Last: testTime, UIDs: []string{"uid-two"}}, {Cluster: "prod-us", UIDs: []string{"uid-three"}}}
	if len(own) == 2 && time.Since(own[1].Last) < time.Hour {
		own[1].Last = time.Time{} // the time of the claim
	}
	testkit.Must(t, err)
	testkit.WantEqual(t, "members", without, own)
}

func TestTheClustersOfANameAreThoseThatClaimIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		claims []events.Claim
		want   []string
	}{
		{"one that claims it again", []events.Claim{{UID: "one"}, {UID: "one"}}, []string{"one"}},
		{"two in turn, in the order of their first claims", []events.Claim{{UID: "one"}, {UID: "two"}, {UID: "one"}}, []string{"one", "two"}},
		{"one that was replaced", []events.Claim{{UID: "one"}, {UID: "two", Replaces: "one"}, {UID: "two", Replaces: "one"}}, []string{"two"}},
		{
			"one that was replaced and is still there, whatever the other one repeats",
			[]events.Claim{{UID: "one"}, {UID: "two", Replaces: "one"}, {UID: "one"}, {UID: "two", Replaces: "one"}},
			[]string{"two", "one"},
		},
		{
			"one that takes its name back, and loses it again",
			[]events.Claim{{UID: "one"}, {UID: "two", Replaces: "one"}, {UID: "one", Replaces: "two"}, {UID: "two", Replaces: "one"}},
			[]string{"two"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &Member{}
			for _, claim := range tt.claims {
				m.claimed(claim)
			}
			testkit.WantEqual(t, "UIDs", tt.want, m.UIDs)
		})
	}
}

// openChecked declares a stream FLEET that collects an intake of each cluster, as deploy/nats/render.sh does. The intakes take whatever is on
// CHANGES: the cluster's server ignores the filter.
func openChecked(t *testing.T, s *testServer, clusters ...string) *Reader {
	t.Helper()
	js := s.jetstream()
	config := jetstream.StreamConfig{Name: "FLEET", AllowDirect: true, AllowMsgTTL: true}
	for _, cluster := range clusters {
		createStream(t, js, jetstream.StreamConfig{
			Name: "FLEET-" + cluster, AllowMsgTTL: true, Sources: []*jetstream.StreamSource{{Name: events.StreamChanges}},
		})
		config.Sources = append(config.Sources, &jetstream.StreamSource{Name: "FLEET-" + cluster, FilterSubject: events.ChangesRoot + cluster + ".>"})
	}
	createStream(t, js, config)
	r, err := OpenFleet(t.Context(), s.connect(), "FLEET")
	testkit.Must(t, err)
	return r
}

func TestAFleetNamesTheClusterThatDeliversEventsOfAnother(t *testing.T) {
	s := sharedServer(t)
	r := openChecked(t, s, testCluster)
	mustPublish(t, s.bus(), version("db", "1"), 0)
	for _, cluster := range []string{"prod-us", "prod-ap"} {
		change := version("db", "1")
		change.Cluster = cluster
		mustPublish(t, busOf(t, cluster, s.url()), change, 0)
	}
	mustPublish(t, s.bus(), version("last", "1"), 0)
	var got []string
	testkit.Await(t, "the fleet has the last event", func(ctx context.Context) bool {
		got = nil
		err := r.History(ctx, HistoryQuery{}, func(stored events.Stored) error {
			got = append(got, stored.Subject)
			return nil
		})
		return err == nil && len(got) > 0 && got[len(got)-1] == "keyturn.v1.prod-eu.secret.shop.last"
	})
	testkit.WantEqual(t, "subjects in the fleet", []string{"keyturn.v1.prod-eu.secret.shop.db", "keyturn.v1.prod-eu.secret.shop.last"}, got)
	want := []Member{{
		Cluster: testCluster, Last: testTime, Sourced: true, Reached: true, Checked: true, Foreign: 2, ForeignClusters: []string{"prod-ap", "prod-us"},
	}}
	members, err := membersOf(t, r)
	testkit.Must(t, err)
	testkit.WantEqual(t, "members", want, members)
}
