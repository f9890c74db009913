package openbao

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

func TestALineOnlySaysWhereToLook(t *testing.T) {
	const often = 10 // within a minute
	for _, test := range []struct {
		name      string
		line      []byte
		path      string // of the secret, without its mount; empty: db
		state     State
		version   int64
		operation string
		asked     int // how often
		late      time.Duration
		isNew     bool // written since the line
	}{
		{name: "a write of the version that is there", line: writeLine("update", "secret/data/db", 3), state: Live, version: 3, operation: "update", asked: 1},
		{name: "one that comes just in time to say who did it", line: writeLine("update", "secret/data/db", 3), late: maxLate, state: Live, version: 3, operation: "update", asked: 1},
		{name: "one that comes too late for that", line: writeLine("update", "secret/data/db", 3), late: maxLate + time.Second, state: Live, version: 3, asked: 1},
		{name: "a write that is older", line: writeLine("update", "secret/data/db", 2), state: Live, version: 3, asked: 1, isNew: true},
		{name: "a write of a version that is not there", line: writeLine("update", "secret/data/db", 9), state: Live, version: 3, asked: often},
		{name: "a write before the secret was made anew", line: writeLine("update", "secret/data/anew", 9), path: "anew", state: Live, version: 1, asked: 1},
		{name: "a deletion that is false", line: writeLine("delete", "secret/data/db", 0), state: Live, version: 3, asked: often},
		// The deletion of what never existed succeeds, too.
		{name: "a deletion before the secret was made anew", line: writeLine("delete", "secret/metadata/anew", 0), path: "anew", state: Live, version: 1, asked: 1},
		{name: "a deletion of what is not there", line: writeLine("delete", "secret/metadata/never", 0), path: "never", state: Gone, operation: "delete", asked: 1},
		{
			name: "a write to a mount that is not there",
			line: []byte(strings.ReplaceAll(string(writeLine("create", "secret/data/x", 1)), "secret/", "nowhere/")),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, path := newFakeStore(kv2), cmp.Or(test.path, "db")
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z"))
			store.say("secret/metadata/anew", http.StatusOK, metadataOf(1, "2000-01-01T00:00:01Z"))
			known := func(string, string, string) []string {
				t.Error("all paths are looked at because of a line")
				return nil
			}
			inBubble(t, askOnly, store, func(o *Options) { o.Known = known }, func(t *testing.T, r *rig) {
				written := time.Now() // by the line
				after(test.late)
				r.feed.pipelines[0].intake.take(t.Context(), test.line)
				after(time.Minute)
				got := r.seen()
				if test.state == 0 {
					if len(got) > 0 {
						t.Errorf("%+v was observed", got)
					}
					return
				}
				if o := got["secret/"+path]; len(got) != 1 || o.State != test.state || o.Version != test.version || o.Operation != test.operation || o.ReadAt.IsZero() {
					t.Errorf("%+v, want version %d %v by %q", got, test.version, test.state, test.operation)
				} else if isNew := o.PolledBefore.Equal(written.Add(-maxLineDelay)); isNew != test.isNew || !isNew && !o.PolledBefore.IsZero() {
					t.Errorf("%+v, want it written since the line: %t", o, test.isNew)
				}
				if asked := store.times("secret/metadata/" + path); asked != test.asked {
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

func TestAStoreWithKVv1AloneIsBackOnceItsMountsAre(t *testing.T) {
	store := newFakeStore(`{"old/":{"type":"kv","options":{"version":"1"}}}`)
	mounts := store.answers["sys/internal/ui/mounts"]
	store.say("sys/internal/ui/mounts", http.StatusServiceUnavailable, `{"errors":["Vault is sealed"]}`)
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		p := r.feed.pipelines[0]
		p.intake.take(t.Context(), []byte(strings.ReplaceAll(string(writeLine("update", "secret/db", 0)), "secret/", "old/")))
		after(time.Minute)
		store.do("sys/internal/ui/mounts", mounts)
		after(time.Minute)
		if got := r.seen(); len(got) != 1 || p.status.failures[auditedPaths] != nil {
			t.Errorf("observed %v, and the store still fails with %v", paths(got), p.status.failures[auditedPaths])
		}
	})
}

func TestWhatWasReceivedBeforeAStopIsObserved(t *testing.T) {
	const mounts = `{"data":{"secret":{"old/":{"type":"kv","options":{"version":"1"}},"secret/":{"type":"kv","options":{"version":"2"}}}}}`
	store := newFakeStore(kv2)
	store.do("sys/internal/ui/mounts", func(request *http.Request) (int, string) {
		select {
		case <-request.Context().Done():
			return 0, ""
		case <-time.After(time.Second):
			return http.StatusOK, mounts
		}
	})
	store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z"))
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, askOnly, func(o *Options) { o.Transport = store })
		stop := r.start(t)
		synctest.Wait()
		r.feed.pipelines[0].intake.take(t.Context(), writeLine("update", "secret/data/db", 3))
		r.feed.pipelines[0].intake.take(t.Context(), []byte(strings.ReplaceAll(string(writeLine("update", "secret/db", 0)), "secret/", "old/")))
		synctest.Wait()
		stop()
		if got := r.seen(); got["secret/db"].Version != 3 || got["old/db"].Operation != "update" {
			t.Errorf("%+v, want both", got)
		}
	})
}

func TestAStandbyThatLacksADeletionIsAskedAgain(t *testing.T) {
	store := newFakeStore(kv2)
	store.do("secret/metadata/db", func(*http.Request) (int, string) {
		if store.times("secret/metadata/db") < 4 {
			return http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z")
		}
		return http.StatusNotFound, `{"errors":[]}`
	})
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		r.feed.pipelines[0].intake.take(t.Context(), writeLine("delete", "secret/metadata/db", 0))
		after(time.Minute)
		got := r.seen()
		if o := got["secret/db"]; len(got) != 1 || o.State != Gone || o.Operation != "delete" || o.By != "token" {
			t.Errorf("%+v, want it gone as in the audit log", got)
		}
	})
}

func TestAStoreThatLagsBehindMoreThanItDeclaresIsToldOnce(t *testing.T) {
	for _, test := range []struct {
		name, declared string
		lag            time.Duration
		told           int
	}{
		{name: "it does not lag"},
		{name: "it lags, and declares nothing", lag: 5 * time.Second, told: 1},
		{name: "it declares more", declared: "lag: 8s, ", lag: 5 * time.Second},
		{name: "it declares less", declared: "lag: 2s, ", lag: 5 * time.Second, told: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			inBubble(t, strings.Replace(askOnly, "poll: ", test.declared+"poll: ", 1), store, nil, func(t *testing.T, r *rig) {
				began := time.Now()
				for _, path := range []string{"db", "mail"} {
					store.do("secret/metadata/"+path, func(*http.Request) (int, string) {
						if time.Since(began) < test.lag {
							return http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z")
						}
						return http.StatusOK, metadataOf(4, "2000-01-01T00:00:00Z")
					})
					r.feed.pipelines[0].intake.take(t.Context(), writeLine("update", "secret/data/"+path, 4))
				}
				after(time.Minute)
				got := r.seen()
				for _, path := range []string{"secret/db", "secret/mail"} {
					if o := got[path]; o.Version != 4 || o.Operation != "update" || o.By != "token" || o.Lag != r.feed.pipelines[0].config.lag {
						t.Errorf("%s: %+v, want version 4 as in the audit log, with the lag of the store", path, o)
					}
				}
				if told := strings.Count(r.log.String(), "set its lag in the configuration"); told != test.told {
					t.Errorf("told %d times, want %d:\n%s", told, test.told, r.log)
				}
			})
		})
	}
}

func TestARotationIsNotByTheClientOfALaterOne(t *testing.T) {
	store := newFakeStore(`{"database/":{"type":"database"}}`)
	store.say("database/static-roles/shop", http.StatusOK, `{"data":{"last_vault_rotation":"1999-01-01T00:00:00Z"}}`)
	line := lineOf(`"operation":"update","mount_point":"database/","mount_type":"database","path":"database/rotate-role/shop"`, "", "")
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		r.feed.pipelines[0].intake.take(t.Context(), []byte(strings.Replace(line, "2026-11-20T11:03:06Z", "2000-01-01T00:00:00Z", 1)))
		after(time.Second)
		if o := r.seen()["database/static-creds/shop"]; o.State != Live || o.Operation != "" || o.By != "" {
			t.Errorf("%+v, want the rotation of a year ago by nobody that is known", o)
		}
		store.say("database/static-roles/shop", http.StatusOK, `{"data":{"last_vault_rotation":"2000-01-01T00:00:00Z"}}`)
		after(time.Minute)
		if o := r.seen()["database/static-creds/shop"]; o.Operation != "rotate" || o.By != "token" {
			t.Errorf("%+v, want the rotation as in the audit log", o)
		}
	})
}

func TestAStoreIsReadWithoutItsAuthors(t *testing.T) {
	const mounts = `{"old/":{"type":"kv","options":{"version":"1"}},"secret/":{"type":"kv","options":{"version":"2"}}}`
	for _, test := range []struct{ name, config, by string }{
		{name: "the audit log says who writes", config: askOnly, by: "alice"},
		{name: "and is not to say it", config: strings.Replace(askOnly, "poll: ", "omitAuthors: true, poll: ", 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(mounts)
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z"))
			inBubble(t, test.config, store, nil, func(t *testing.T, r *rig) {
				line := strings.Replace(string(writeLine("update", "secret/data/db", 3)), `"token"`, `"alice"`, 1)
				plain := strings.Replace(string(writeLine("update", "secret/db", 0)), `"token"`, `"alice"`, 1)
				r.feed.pipelines[0].intake.take(t.Context(), []byte(line))
				r.feed.pipelines[0].intake.take(t.Context(), []byte(strings.ReplaceAll(plain, "secret/", "old/")))
				after(time.Second)
				got := r.seen()
				for _, path := range []string{"secret/db", "old/db"} {
					if o := got[path]; o.Operation != "update" || o.By != test.by {
						t.Errorf("%s: %s by %q, want update by %q", path, o.Operation, o.By, test.by)
					}
				}
			})
		})
	}
}

func TestAPathIsGivenUpIfTheStoreAnswersBadlyForLong(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		tries  int // of the path; zero: it is never given up
	}{
		{name: "malformed answers", status: http.StatusOK, body: `{"data":[]}`, tries: maxTries},
		{name: "a store that is sealed", status: http.StatusServiceUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/metadata/bad", test.status, test.body)
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				p := r.feed.pipelines[0]
				p.intake.take(t.Context(), writeLine("update", "secret/data/bad", 3))
				after(time.Hour)
				tries, asked := store.times("secret/metadata/bad"), len(p.intake.polls) == 1
				if test.tries > 0 && tries != test.tries || test.tries == 0 && tries < 100 || asked != (test.tries > 0) {
					t.Errorf("tried %d times, asked for a poll: %t", tries, asked)
				}
				store.say("secret/metadata/bad", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z"))
				after(time.Minute)
				if got := r.seen(); len(got) == 1 != (test.tries == 0) {
					t.Errorf("observed %v", paths(got))
				}
			})
		})
	}
}

func TestAPollSaysNothingAboutWhatALineNames(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
	store.say("secret/metadata/other", http.StatusOK, metadataOf(1, "2000-01-01T00:00:00.5Z"))
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(10 * time.Second)
		r.feed.pipelines[0].intake.take(t.Context(), writeLine("update", "secret/data/other", 1))
		after(10 * time.Second)
		if o := r.seen()["secret/other"]; o.Version != 1 || !o.PolledBefore.IsZero() {
			t.Errorf("%+v, want version 1 without the time of a poll of others", o)
		}
	})
}

func TestALineAboutAMountThatIsNewerThanTheTableWaitsForTheNextTable(t *testing.T) {
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
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z"))
			inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
				s := r.feed.pipelines[0].intake
				s.take(t.Context(), writeLine("update", "secret/data/db", 3))
				after(3 * time.Second)
				if test.created {
					store.say("sys/internal/ui/mounts", http.StatusOK, both)
					store.say("new/metadata/db", http.StatusOK, metadataOf(1, "2000-01-01T00:00:03Z"))
				}
				for range 10 {
					s.take(t.Context(), []byte(strings.ReplaceAll(string(writeLine("create", "secret/data/db", 1)), "secret/", "new/")))
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

func TestLinesAboutMountsThatThereAreNotLeaveRoomForOthers(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "2000-01-01T00:00:00Z"))
	inBubble(t, askOnly, store, nil, func(t *testing.T, r *rig) {
		s := r.feed.pipelines[0].intake
		s.take(t.Context(), writeLine("update", "secret/data/db", 3)) // so that the mounts are cached
		after(time.Second)
		store.say("secret/metadata/db", http.StatusOK, metadataOf(4, "2000-01-01T00:00:01Z"))
		for i := range maxLooks {
			invented := []byte(strings.ReplaceAll(string(writeLine("update", "secret/data/db", 1)), "secret/", fmt.Sprintf("x%d/", i)))
			s.take(t.Context(), invented)
			synctest.Wait()
			if asked := len(r.feed.pipelines[0].intake.polls) == 1; asked != (i >= maxSpare) {
				t.Fatalf("asked for a poll: %t, although %d paths wait", asked, min(i, maxSpare))
			}
		}
		s.take(t.Context(), writeLine("update", "secret/data/db", 4))
		after(time.Second)
		if got := r.seen()["secret/db"]; got.Version != 4 {
			t.Errorf("observed %+v, want version 4", got)
		}
	})
}
