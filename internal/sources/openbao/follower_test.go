package openbao

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const askOnly = withToken + "{}}]"

// writeLine returns an audit line about a secret, with the time at which the clock of a bubble starts.
func writeLine(operation, path string, version int) []byte {
	response := ""
	if version > 0 {
		response = fmt.Sprintf(`"data":{"version":%d,"created_time":"2000-01-01T00:00:00Z"}`, version)
	}
	line := lineOf(fmt.Sprintf(`"operation":%q,"mount_point":"secret/","mount_type":"kv","path":%q`, operation, path), response, "")
	return []byte(strings.Replace(line, "2026-11-20T11:03:06Z", "2000-01-01T00:00:00Z", 1))
}

// writeLineWithoutTime is writeLine for Vault, which replaces the time of the version with an HMAC, so that the store must be asked.
func writeLineWithoutTime(operation, path string, version int) []byte {
	return []byte(strings.Replace(string(writeLine(operation, path, version)), `"created_time":"2000-01-01T00:00:00Z"`, `"created_time":"hmac-sha256:0"`, 1))
}

func TestWhatALineDoesNotIdentifyIsReadFirst(t *testing.T) {
	tests := []struct {
		name      string
		line      []byte
		state     State
		version   int64
		operation string
		asked     int // how often
	}{
		{name: "a write", line: writeLine("update", "secret/data/db", 9), state: Live, version: 9, operation: "update"},
		{
			name: "a write of an unknown time", line: writeLineWithoutTime("update", "secret/data/db", 3),
			state: Live, version: 3, operation: "update", asked: 1,
		},
		{
			name:  "a write in the future",
			line:  []byte(strings.Replace(string(writeLine("update", "secret/data/db", 3)), `"created_time":"2000`, `"created_time":"2200`, 1)),
			state: Live, version: 3, operation: "update", asked: 1,
		},
		{name: "a version far from the last one", line: writeLine("update", "secret/data/db", 3+maxLeap+1), state: Live, version: 3, asked: 1 + maxStale},
		{
			name: "the last version that is near enough", line: writeLine("update", "secret/data/db", 3+maxLeap),
			state: Live, version: 3 + maxLeap, operation: "update",
		},
		{name: "a write that is older", line: writeLineWithoutTime("update", "secret/data/db", 2), state: Live, version: 3, asked: 1},
		{name: "a write that is false", line: writeLineWithoutTime("update", "secret/data/db", 9), state: Live, version: 3, asked: 1 + maxStale},
		{name: "a deletion that is false", line: writeLine("delete", "secret/data/db", 0), state: Live, version: 3, asked: 1 + maxStale},
		{name: "a destruction of another version", line: writeLine("update", "secret/destroy/db", 0), state: Live, version: 3, asked: 1},
		{name: "a write to what is not there", line: writeLineWithoutTime("create", "secret/data/never", 1)},
		{name: "a deletion of what was never there", line: writeLine("delete", "secret/metadata/never", 0)},
		{
			name: "a write to a mount that is not there",
			line: []byte(strings.ReplaceAll(string(writeLineWithoutTime("create", "secret/data/x", 1)), "secret/", "nowhere/")),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z", ""))
			known := func(string, string, string) []string {
				t.Error("all paths are looked at because of a line")
				return nil
			}
			recorded := func(path events.StorePath) (int64, bool) { return 3, path.Store == "main" && path.Path == "db" }
			inBubble(t, askOnly, store, func(o *Options) { o.Known, o.Recorded = known, recorded }, func(t *testing.T, r *rig) {
				r.feed.pipelines[0].intake.take(t.Context(), test.line)
				after(time.Minute)
				got := r.seen()
				if test.state == 0 {
					if len(got) > 0 {
						t.Errorf("%+v was observed", got)
					}
					return
				}
				if o := got["secret/db"]; len(got) != 1 || o.State != test.state || o.Version != test.version || o.Operation != test.operation {
					t.Errorf("%+v, want version %d %v by %q", got, test.version, test.state, test.operation)
				}
				if asked := store.times("secret/metadata/db"); asked != test.asked {
					t.Errorf("asked %d times, want %d", asked, test.asked)
				}
			})
		})
	}
}

func TestALineOfKVv1IsTheState(t *testing.T) {
	store := newFakeStore(`{"old/":{"type":"kv","options":{"version":"1"}}}`)
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		for _, test := range []struct {
			operation string
			state     State
		}{{"create", Live}, {"delete", Gone}} {
			line := strings.ReplaceAll(string(writeLine(test.operation, "secret/data/db", 0)), "secret/", "old/")
			r.feed.pipelines[0].intake.take(t.Context(), []byte(line))
			after(time.Second)
			got := r.seen()
			if o := got["old/data/db"]; len(got) != 1 || o.State != test.state || o.Operation != test.operation || o.Request != "1" || !o.ReadAt.IsZero() {
				t.Errorf("%+v, want it %v by the request", got, test.state)
			}
		}
	})
}

func TestAStandbyThatLagsBehindIsAskedAgain(t *testing.T) {
	tests := []struct {
		name   string
		line   []byte
		before string
		after  string
		state  State
	}{
		{
			name: "a write", line: writeLineWithoutTime("update", "secret/data/db", 4), state: Live,
			before: metadataOf(3, "1999-01-01T00:00:00Z", ""), after: metadataOf(4, "2000-01-01T00:00:00Z", ""),
		},
		{
			name: "a deletion", line: writeLine("delete", "secret/data/db", 0), state: Deleted,
			before: metadataOf(3, "1999-01-01T00:00:00Z", ""), after: metadataOf(3, "1999-01-01T00:00:00Z", `,"deletion_time":"2000-01-01T00:00:00Z"`),
		},
		{
			name: "a deletion of metadata", line: writeLine("delete", "secret/metadata/db", 0), state: Gone,
			before: metadataOf(3, "1999-01-01T00:00:00Z", ""),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.do("secret/metadata/db", func(*http.Request) (int, string) {
				switch {
				case store.times("secret/metadata/db") < 4:
					return http.StatusOK, test.before
				case test.after == "":
					return http.StatusNotFound, `{"errors":[]}`
				}
				return http.StatusOK, test.after
			})
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				r.feed.pipelines[0].intake.take(t.Context(), test.line)
				after(time.Minute)
				got := r.seen()
				if o := got["secret/db"]; len(got) != 1 || o.State != test.state || o.Operation == "" || o.By != "token" {
					t.Errorf("%+v, want it %v as in the audit log", got, test.state)
				}
			})
		})
	}
}

func TestAStoreThatIsAwayIsAskedUntilItIsBack(t *testing.T) {
	store := newFakeStore(kv2)
	away := func(*http.Request) (int, string) {
		return http.StatusServiceUnavailable, `{"errors":["Vault is sealed"]}`
	}
	mounts := store.answers["sys/internal/ui/mounts"]
	store.do("sys/internal/ui/mounts", away)
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		s := r.feed.pipelines[0].intake
		s.take(t.Context(), writeLineWithoutTime("update", "secret/data/db", 4))
		s.take(t.Context(), writeLine("delete", "secret/data/other", 0))
		after(time.Minute)
		store.do("sys/internal/ui/mounts", mounts)
		store.do("secret/metadata/db", away)
		after(time.Minute)
		store.say("secret/metadata/db", http.StatusOK, metadataOf(4, "2000-01-01T00:00:00Z", ""))
		after(time.Minute)
		got := r.seen()
		if len(got) != 2 || got["secret/db"].Operation != "update" || got["secret/other"].State != Gone {
			t.Errorf("%+v, want both", got)
		}
		// The store was down twice: the second path was read in between.
		if logged := strings.Count(r.log.String(), "reason=sealed-or-standby"); logged != 2 {
			t.Errorf("logged %d times, want twice:\n%s", logged, r.log)
		}
	})
}

func TestManyHintsAtOnePathAreOneRequest(t *testing.T) {
	store := newFakeStore(kv2)
	release := make(chan struct{})
	store.do("secret/metadata/slow", func(*http.Request) (int, string) { <-release; return http.StatusNotFound, "{}" })
	store.say("secret/metadata/db", http.StatusOK, metadataOf(7, "2000-01-01T00:00:00Z", ""))
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		release = make(chan struct{})
		s := r.feed.pipelines[0].intake
		s.take(t.Context(), writeLine("update", "secret/undelete/slow", 0))
		synctest.Wait()
		for version := 1; version <= 7; version++ {
			s.take(t.Context(), writeLineWithoutTime("update", "secret/data/db", version))
		}
		s.take(t.Context(), writeLine("update", "secret/destroy/db", 0))
		synctest.Wait()
		close(release)
		after(time.Second)
		if got := store.times("secret/metadata/db"); got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
		// An older version was destroyed: the last write explains the state.
		if o := r.seen()["secret/db"]; o.Version != 7 || o.Operation != "update" {
			t.Errorf("%+v", o)
		}
	})
}

func TestTooManyHintsMakeAPoll(t *testing.T) {
	store := newFakeStore(kv2)
	release := make(chan struct{})
	store.do("secret/metadata/slow", func(*http.Request) (int, string) { <-release; return http.StatusNotFound, "{}" })
	store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		release = make(chan struct{})
		s := r.feed.pipelines[0].intake
		after(10 * time.Second)
		s.take(t.Context(), writeLine("update", "secret/undelete/slow", 0))
		synctest.Wait()
		before := store.times("secret/detailed-metadata?scan")
		for i := range hintsSize + 5 {
			s.take(t.Context(), writeLine("update", fmt.Sprintf("secret/undelete/%d", i), 0))
		}
		after(10 * time.Second)
		if got := r.lines(t, dropped); got != 5 {
			t.Errorf("%d were dropped, want 5", got)
		}
		if got := store.times("secret/detailed-metadata?scan"); got == before {
			t.Error("the store was not polled")
		}
		close(release)
	})
}

func TestAHintIsGivenUpIfTheStoreAnswersItBadlyForLong(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		tries  int // of each hint; zero: it is never given up
	}{
		{name: "malformed answers", status: http.StatusOK, body: `{"data":[]}`, tries: maxTries},
		{name: "errors of the store", status: http.StatusInternalServerError, body: `{"errors":["oops"]}`, tries: maxTries},
		{name: "a store that is down", status: 0},
		{name: "a store that is sealed", status: http.StatusServiceUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/metadata/bad", test.status, test.body)
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				p := r.feed.pipelines[0]
				p.intake.take(t.Context(), writeLineWithoutTime("update", "secret/data/bad", 3))
				after(time.Hour)
				tries, asked := store.times("secret/metadata/bad"), len(p.polls) == 1
				if test.tries > 0 && tries != test.tries || test.tries == 0 && tries < 100 || asked != (test.tries > 0) {
					t.Errorf("tried %d times, asked for a poll: %t", tries, asked)
				}
				store.say("secret/metadata/bad", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z", ""))
				after(time.Minute)
				if got := r.seen(); len(got) == 1 != (test.tries == 0) {
					t.Errorf("observed %v", paths(got))
				}
			})
		})
	}
}

func TestALineThatComesLateIsOnlyAReasonToLook(t *testing.T) {
	for _, test := range []struct {
		name      string
		late      time.Duration
		operation string
		asked     int
	}{
		{name: "in time", late: maxLate, operation: "update"},
		{name: "late", late: maxLate + time.Second, asked: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z", ""))
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				after(test.late)
				r.feed.pipelines[0].intake.take(t.Context(), writeLine("update", "secret/data/db", 3))
				after(time.Minute)
				if got := r.seen()["secret/db"]; got.Version != 3 || got.Operation != test.operation {
					t.Errorf("observed %+v, want version 3 by %q", got, test.operation)
				}
				if asked := store.times("secret/metadata/db"); asked != test.asked {
					t.Errorf("asked %d times, want %d", asked, test.asked)
				}
			})
		})
	}
}

func TestAHintAtAMountThatIsNewerThanTheTableWaitsForTheNextTable(t *testing.T) {
	const both = `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}},"new/":{"type":"kv","options":{"version":"2"}}}}}`
	for _, test := range []struct {
		name    string
		created bool // the mount
	}{
		{name: "and is read then", created: true},
		{name: "and is given up if there is none then"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z", ""))
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				s := r.feed.pipelines[0].intake
				s.take(t.Context(), writeLineWithoutTime("update", "secret/data/db", 3))
				after(3 * time.Second)
				if test.created {
					store.say("sys/internal/ui/mounts", http.StatusOK, both)
					store.say("new/metadata/db", http.StatusOK, metadataOf(1, "2000-01-01T00:00:03Z", ""))
				}
				for range 10 {
					s.take(t.Context(), []byte(strings.ReplaceAll(string(writeLineWithoutTime("create", "secret/data/db", 1)), "secret/", "new/")))
				}
				after(maxNoMountAge)
				if got := r.seen()["new/db"]; got.State == Live != test.created || got.Operation == "create" != test.created {
					t.Errorf("observed %+v", got)
				}
				if got := strings.Count(r.log.String(), "reason=no-mount"); got == 0 != test.created {
					t.Errorf("logged %d times that there is no such mount:\n%s", got, r.log)
				}
				after(time.Minute)
				if got := store.times("sys/internal/ui/mounts"); got != 2 {
					t.Errorf("asked %d times for the mounts, want twice", got)
				}
			})
		})
	}
}

func TestHintsAtMountsThatThereAreNotLeaveRoomForOthers(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z", ""))
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		s := r.feed.pipelines[0].intake
		s.take(t.Context(), writeLineWithoutTime("update", "secret/data/db", 3)) // so that the mounts are cached
		after(time.Second)
		store.say("secret/metadata/db", http.StatusOK, metadataOf(4, "2000-01-01T00:00:01Z", ""))
		for i := range hintsSize {
			invented := []byte(strings.ReplaceAll(string(writeLineWithoutTime("update", "secret/data/db", 1)), "secret/", fmt.Sprintf("x%d/", i)))
			s.take(t.Context(), invented)
			synctest.Wait()
		}
		s.take(t.Context(), writeLineWithoutTime("update", "secret/data/db", 4))
		after(time.Second)
		if got := r.seen()["secret/db"]; got.Version != 4 {
			t.Errorf("observed %+v, want version 4", got)
		}
	})
}

// followerOf follows a store, and observes into got.
func followerOf(t *testing.T, store *fakeStore, got *[]Observation) *follower {
	t.Helper()
	c := clientOf(t, store)
	from, mounts, log := origin{store: "main"}, newMountTable(c), newStatus(c.session.log, time.Now)
	return &follower{
		origin: from, mounts: mounts, status: log, now: time.Now, polls: newPollRequests(),
		metadataReader: &metadataReader{origin: from, client: c, mounts: mounts, rotations: newRotations(c, time.Now)},
		outlet:         &outlet{status: log, sink: func(o Observation) bool { *got = append(*got, o); return true }},
	}
}

// hintsOfDB are hints of writes of secret/db that have just come, each with a version.
func hintsOfDB(t *testing.T, versions ...int) (hints []hint) {
	t.Helper()
	for _, version := range versions {
		e, result := decodeLine(writeLine("update", "secret/data/db", version))
		if result != used {
			t.Fatal(result)
		}
		e.received = time.Now()
		e.at = e.received // It does not come late.
		hints = append(hints, newHint(e))
	}
	return hints
}

func TestAHintThatIsGivenUpTakesNoLaterOneWithIt(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata/db", http.StatusInternalServerError, `{"errors":["oops"]}`)
	var got []Observation
	f, waiting := followerOf(t, store, &got), hintsOfDB(t, 900, 4)
	waiting[0].tries = maxTries - 1
	waiting = f.readDue(t.Context(), waiting)
	if len(waiting) != 1 || waiting[0].entry.version != 4 {
		t.Fatalf("%+v wait, want the later one", waiting)
	}
	store.say("secret/metadata/db", http.StatusOK, metadataOf(4, "2000-01-01T00:00:00Z", ""))
	waiting[0].due = time.Time{}
	if f.readDue(t.Context(), waiting); len(got) != 1 || got[0].Version != 4 {
		t.Errorf("observed %+v, want version 4", got)
	}
}

func TestAHintThatIsFalseDoesNotHoldUpATrueOne(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata/db", http.StatusOK, metadataOf(4, "2000-01-01T00:00:00Z", ""))
	var got []Observation
	f := followerOf(t, store, &got)
	waiting := f.readDue(t.Context(), hintsOfDB(t, 900, 4, 901))
	if len(got) != 1 || got[0].Version != 4 || got[0].Operation != "update" || store.times("secret/metadata/db") != 1 {
		t.Errorf("observed %+v, want version 4 as in its line, from one request", got)
	}
	if len(waiting) != 2 || waiting[0].entry.version != 900 || waiting[1].entry.version != 901 || waiting[0].tries != 1 {
		t.Errorf("%+v wait, want those of what is not there", waiting)
	}
}
