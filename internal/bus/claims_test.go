package bus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func mustClaim(t *testing.T, b *Bus, uid, replaces string) {
	t.Helper()
	testkit.Must(t, tryClaim(t, b, uid, replaces))
}

// tryClaim returns the error of a claim, and checkClaim that of a check.
func tryClaim(t *testing.T, b *Bus, uid, replaces string) error {
	t.Helper()
	return errorOf(t, func() error { return b.Claim(t.Context(), uid, replaces) })
}

func checkClaim(t *testing.T, b *Bus, uid, replaces string) error {
	t.Helper()
	return errorOf(t, func() error { return b.CheckClaim(t.Context(), uid, replaces) })
}

func TestANameBelongsToTheClusterThatClaimedItFirst(t *testing.T) {
	b := sharedServer(t).bus()
	if err := checkClaim(t, b, testUID, ""); err != nil {
		t.Errorf("a name that nobody has claimed: %v", err)
	}
	for range 2 { // once more after a restart
		mustClaim(t, b, testUID, "")
	}
	if err := checkClaim(t, b, testUID, ""); err != nil {
		t.Errorf("one's own name: %v", err)
	}
	refused := func(what string, err error, uid string) {
		t.Helper()
		if !errors.Is(err, ErrClaimed) {
			t.Fatalf("%s: got %v, want it refused", what, err)
		}
		for _, want := range []string{`"prod-eu"`, "UID " + uid, "--cluster", "--replaces-cluster=" + uid} {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %q, want one line with %q", what, err, want)
			}
		}
	}
	refused("another cluster claims it", tryClaim(t, b, otherUID, ""), testUID)
	refused("another cluster checks it", checkClaim(t, b, otherUID, ""), testUID)
	refused("another cluster replaces a third", tryClaim(t, b, otherUID, "a-third"), testUID)

	if err := checkClaim(t, b, otherUID, testUID); err != nil {
		t.Errorf("its actuator starts before its watcher has taken the name over: %v", err)
	}
	mustClaim(t, b, otherUID, testUID) // A rebuilt cluster takes its name over.
	refused("the one that was replaced is back", tryClaim(t, b, testUID, ""), otherUID)
	mustClaim(t, b, testUID, otherUID) // It takes it back within the window of duplicates.
	mustClaim(t, b, otherUID, testUID) // And again.
	stored, err := lastOn(t, b, events.ClaimSubject(testCluster))
	testkit.Must(t, err)
	got, err := stored.Claim()
	if err != nil || got.UID != otherUID || got.Replaces != testUID {
		t.Errorf("the claim is %+v, %v", got, err)
	}
	if told := readHistory(t, b, HistoryQuery{Kind: events.KindCluster}); len(told) != 4 {
		t.Errorf("the history has %q, want each of the four claims", told)
	}
}

// The key of the watcher's NATS user is enough to claim the name for a cluster that does not exist. CHANGES keeps that claim for ever.
func TestOnANATSOfItsOwnAClusterTakesItsNameBack(t *testing.T) {
	s := sharedServer(t)
	b := s.bus() // It sees also what is declared later.
	testkit.Must(t, Declare(t.Context(), s.jetstream(), Sole(Declared(1))))
	mustClaim(t, b, testUID, "")
	mustClaim(t, b, otherUID, testUID)
	if err := checkClaim(t, b, testUID, ""); err != nil {
		t.Errorf("the actuator ends: %v", err)
	}
	mustClaim(t, b, testUID, "")
	stored, err := lastOn(t, b, events.ClaimSubject(testCluster))
	testkit.Must(t, err)
	if got, err := stored.Claim(); err != nil || got.UID != testUID || got.Replaces != otherUID {
		t.Errorf("the claim is %+v, %v, want that of this cluster, which says whom it has replaced", got, err)
	}
}

func TestAClaimIsMadeAgainWhenItIsAWeekOld(t *testing.T) {
	b := sharedServer(t).bus()
	now := testTime
	b.now = func() time.Time { return now }
	told := func() int { return len(readHistory(t, b, HistoryQuery{Kind: events.KindCluster})) }
	mustClaim(t, b, otherUID, "")
	mustClaim(t, b, testUID, otherUID)
	for _, step := range []struct {
		name  string
		after time.Duration
		want  int
	}{
		{"within the week", claimInterval - 2*time.Minute, 2},
		{"when the week is over", 2 * time.Minute, 3},
		{"by a clock that is a month behind", -30 * 24 * time.Hour, 4},
	} {
		now = now.Add(step.after)
		mustClaim(t, b, testUID, "")
		if got := told(); got != step.want {
			t.Errorf("%s: claimed %d times, want %d", step.name, got, step.want)
		}
		if err := checkClaim(t, b, testUID, ""); err != nil {
			t.Errorf("%s, its actuator: %v", step.name, err)
		}
	}
	stored, err := lastOn(t, b, events.ClaimSubject(testCluster))
	testkit.Must(t, err)
	if got, err := stored.Claim(); err != nil || !got.Time.Equal(now) || got.Replaces != otherUID {
		t.Errorf("the claim is %+v, %v, want one of now that still says whom it has replaced", got, err)
	}
	if err := tryClaim(t, b, otherUID, ""); !errors.Is(err, ErrClaimed) {
		t.Errorf("another cluster: got %v, want it refused", err)
	}
}

func TestTheLastTimeOfEachScopeIsKept(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	wide, narrow := events.Scope{Kinds: []events.Kind{events.KindSecret}}, events.Scope{Kinds: []events.Kind{events.KindSecret}, Namespaces: []string{"shop"}}
	for _, one := range []struct {
		scope events.Scope
		at    time.Time
	}{{wide, testTime}, {narrow, testTime}, {wide, testTime.Add(time.Hour)}} {
		published(t, func() error { return b.PublishWatched(t.Context(), one.scope, one.at) })
	}
	mustClaim(t, b, testUID, "")
	testkit.Must(t, errIn(s.jetstream().Publish(t.Context(), events.ChangesRoot+testCluster+".cluster._."+events.WatchedPrefix+"0", []byte("rubbish"))))
	got, err := answer(t, func() ([]events.Watched, error) { return b.Watched(t.Context()) })
	testkit.Must(t, err)
	want := []events.Watched{{Cluster: testCluster, Time: testTime, Scope: narrow}, {Cluster: testCluster, Time: testTime.Add(time.Hour), Scope: wide}}
	testkit.WantEqual(t, "difference", want, got)
	if history := messages(t, s.jetstream(), events.StreamHistory); len(history) != 1 {
		t.Errorf("HISTORY has %d messages, want the claim alone", len(history))
	}
}
