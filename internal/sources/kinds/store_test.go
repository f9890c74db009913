package kinds

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestWhatIsSeenInAStore runs through the history of one secret. Each observation is compared with the last event that was
// published before it.
func TestWhatIsSeenInAStore(t *testing.T) {
	type step struct {
		seen openbao.Observation
		// want is "<verb> <revision>", or empty for no event.
		want    string
		created bool
	}
	for _, tt := range []struct {
		name  string
		first time.Time
		steps []step
	}{
		{name: "a secret older than the first observation of its mount is observed", steps: []step{
			{seen: polled(7, openbao.Live, 0, 10), want: "observed " + revisionOf(7, 0)},
			{seen: polled(7, openbao.Live, 0, 20)},
			{seen: written(8, "update", 30), want: "rotated " + revisionOf(8, 30)},
		}},
		{name: "a secret that was written after others were seen is rotated", first: minute(5), steps: []step{
			{seen: polled(1, openbao.Live, 6, 10), want: "rotated " + revisionOf(1, 6), created: true},
		}},
		{name: "a secret that the poll before could not see is observed", first: minute(5), steps: []step{
			{seen: polledAgain(polled(7, openbao.Live, 8, 20), 10), want: "observed " + revisionOf(7, 8)},
		}},
		{name: "the first secret of a mount that the poll before found empty is rotated", steps: []step{
			{seen: polledAgain(polled(1, openbao.Live, 11, 20), 10), want: "rotated " + revisionOf(1, 11), created: true},
		}},
		{name: "a version that is both audited and polled is published once", steps: []step{
			{seen: written(7, "update", 0), want: "rotated " + revisionOf(7, 0)},
			{seen: written(7, "update", 0)},
			{seen: polled(7, openbao.Live, 0, 1)},
			{seen: polled(8, openbao.Live, 2, 3), want: "rotated " + revisionOf(8, 2)},
			{seen: written(8, "update", 2)},
		}},
		{name: "a version that is deleted and undeleted is said to be, with ids of their own", steps: []step{
			{seen: written(7, "update", 0), want: "rotated " + revisionOf(7, 0)},
			{seen: polled(7, openbao.Deleted, 1, 2), want: "deleted 7/deleted/" + nanos(1)},
			{seen: polled(7, openbao.Deleted, 1, 3)},
			{seen: polled(7, openbao.Live, 0, 4), want: "rotated 7/undeleted/" + nanos(1)},
			{seen: polled(7, openbao.Live, 0, 5)},
			{seen: polled(7, openbao.Deleted, 6, 7), want: "deleted 7/deleted/" + nanos(6)},
		}},
		{name: "a secret that was created again unseen is rotated, although its version is the same", steps: []step{
			{seen: written(1, "create", 0), want: "rotated " + revisionOf(1, 0), created: true},
			{seen: polled(1, openbao.Live, 5, 6), want: "rotated " + revisionOf(1, 5)},
		}},
		{name: "the request ids distinguish the writes of an engine without versions", steps: []step{
			{seen: requested(openbao.Live, "create", "a", 0), want: "rotated request/a", created: true},
			{seen: requested(openbao.Live, "create", "a", 0)},
			{seen: requested(openbao.Live, "update", "b", 1), want: "rotated request/b"},
			{seen: requested(openbao.Gone, "delete", "c", 2), want: "deleted request/c"},
			{seen: requested(openbao.Live, "create", "d", 3), want: "rotated request/d"},
		}},
		{name: "a write without a version counts although the store's clock was set back", steps: []step{
			{seen: requested(openbao.Live, "update", "a", 5), want: "rotated request/a"},
			{seen: received(requested(openbao.Live, "update", "b", 2), 6), want: "rotated request/b"},
			{seen: received(requested(openbao.Gone, "delete", "c", 3), 7), want: "deleted request/c"},
			{seen: received(requested(openbao.Live, "update", "d", 4), 6)},
		}},
		{name: "the order of events does not follow clocks that go back", steps: []step{
			{seen: polled(7, openbao.Live, 30, 1), want: "observed " + revisionOf(7, 30)},
			{seen: received(written(8, "update", 2), 2), want: "rotated " + revisionOf(8, 2)},
			{seen: received(polled(8, openbao.Destroyed, -1, 3), 3), want: "deleted 8/destroyed/" + strconv.FormatInt(minute(30).UnixNano()+1, 10)},
		}},
		{name: "a secret whose metadata is gone and that is made anew begins at one again", steps: []step{
			{seen: written(2, "update", 0), want: "rotated " + revisionOf(2, 0)},
			{seen: polled(0, openbao.Gone, -1, 3), want: "deleted gone/" + nanos(0)},
			{seen: polled(0, openbao.Gone, -1, 4)},
			{seen: written(1, "create", 5), want: "rotated " + revisionOf(1, 5)},
		}},
		{name: "a line of a time to come in an engine without versions does not hide the next one", steps: []step{
			{seen: requested(openbao.Live, "update", "a", 0), want: "rotated request/a"},
			{seen: received(requested(openbao.Live, "update", "b", 3), 2), want: "rotated request/b"},
			{seen: requested(openbao.Live, "update", "c", 3), want: "rotated request/c"},
		}},
		{name: "the audited deletion of an unknown secret is published", steps: []step{
			{seen: requested(openbao.Gone, "delete", "a", 0), want: "deleted request/a"},
		}},
		{name: "the audited deletion of what the store never had is not published", steps: []step{
			{seen: audited(polled(0, openbao.Gone, 1, 1), "delete")},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ring := keyringOf(1)
			var before *LastEvent
			ids := map[string]bool{}
			for n, step := range tt.steps {
				change, said := compareStore(before, step.seen, tt.first)
				got := ""
				if said {
					got = string(change.Verb) + " " + change.Store.Revision
				}
				if got != step.want || change.Created != step.created {
					t.Fatalf("step %d: got %q, created %t, want %q, created %t", n, got, change.Created, step.want, step.created)
				}
				if !said {
					continue
				}
				change.Cluster, change.Time = "prod", step.seen.Received
				if ids[change.ID()] {
					t.Errorf("step %d: the id %s comes twice", n, change.ID())
				}
				ids[change.ID()] = true
				print := ring.fingerprint(change.Source, storeContent(change))[0]
				change.Fingerprint = print.all.Text(print.keyID)
				if _, err := change.Encode(); err != nil {
					t.Fatalf("step %d: the event is refused: %v", n, err)
				}
				if before != nil && change.Previous != before.Fingerprint() {
					t.Errorf("step %d: previous is %s, want that of the event before", n, change.Previous)
				}
				if change.Verb == events.VerbRotated && change.ChangedAt != change.ResourceVersion {
					t.Errorf("step %d: changed at %s, want at %s", n, change.ChangedAt, change.ResourceVersion)
				}
				earlier := before
				before = mustLast(t, change)
				if earlier != nil && !before.inStore().at.After(earlier.inStore().at) {
					t.Errorf("step %d: is of %s, not later than the event before, of %s", n, before.ResourceVersion, earlier.ResourceVersion)
				}
			}
		})
	}
}

func TestFingerprintOfAVersionIsItsOwn(t *testing.T) {
	content := func(seen openbao.Observation) map[string][]byte {
		change, _ := compareStore(nil, seen, time.Time{})
		return storeContent(change)
	}
	seven := written(7, "update", 0)
	if cmp.Equal(content(seven), content(written(8, "update", 1))) {
		t.Error("two versions have the same fingerprint")
	}
	if cmp.Equal(content(seven), content(written(7, "update", 1))) {
		t.Error("a version of a secret that was made anew has the fingerprint of its predecessor")
	}
	testkit.WantEqual(t, "what is fingerprinted of one version", content(seven), content(polled(7, openbao.Live, 0, 9)))
}

func TestAnOlderStateCountsWhenReadsAgreeOnItForLong(t *testing.T) {
	older := func(read int) openbao.Observation { return polled(7, openbao.Live, 1, read) }
	version, rotation := written(9, "update", 10), role(14, 11) // The clock of the server of this rotation is ahead.
	const nine, fourteen = "rotated 9/", "observed rotated/"
	for _, tt := range []struct {
		name  string
		first openbao.Observation
		seen  []openbao.Observation
		want  string // the last event
	}{
		{"a server that lags behind now and then", version, []openbao.Observation{older(20), polled(9, openbao.Live, 10, 22), older(26)}, nine + nanos(10)},
		{"a server that lags behind for a while", version, []openbao.Observation{older(20), older(22), older(24)}, nine + nanos(10)},
		{"a store that was restored", version, []openbao.Observation{older(20), older(22), older(26)}, "rotated 7/" + nanos(1) + "/restored/" + nanos(10)},
		{"an older rotation now and then", rotation, []openbao.Observation{role(2, 12), role(14, 14), role(2, 18)}, fourteen + nanos(14)},
		{"a role of which no rotation is known", rotation, []openbao.Observation{role(-1, 12), role(-1, 18)}, fourteen + nanos(14)},
		{
			"a rotation by a server whose clock is behind that of the one before", rotation,
			[]openbao.Observation{role(12, 13), role(12, 15), role(12, 18), role(12, 20), role(12, 40)},
			"rotated rotated/" + nanos(12) + "/restored/" + nanos(14),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before *LastEvent
			got, restores := "", NewRestores()
			for _, seen := range append([]openbao.Observation{tt.first}, tt.seen...) {
				seen.Lasting = restores.Lasts(storePath.Source(), before, seen)
				change, ok := AssessStore(keyringOf(1), before, seen, time.Time{})
				if ok {
					got = string(change.Verb) + " " + change.Store.Revision
					change.Time = seen.Received
					before = mustLast(t, change)
				}
			}
			if got != tt.want {
				t.Errorf("the last event is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheLagOfAStoreIsInItsEvents(t *testing.T) {
	seen := written(7, "update", 0)
	seen.Lag = 8 * time.Second
	if change, ok := compareStore(nil, seen, time.Time{}); !ok || change.Store.LagSeconds != 8 {
		t.Errorf("an event: %t, %+v; want a lag of 8 seconds", ok, change.Store)
	}
}
