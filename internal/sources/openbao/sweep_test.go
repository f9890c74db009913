package openbao

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

const pollSecret = withToken + "{interval: 1m, mounts: [secret]}}]"

// scanned is an answer of OpenBao, cut to one field that is not read of each kind.
const scanned = `{"data":{"keys":["shop/","shop/api/","shop/api/key","shop/db","shop/old","shop/unwritten"],"key_info":{"shop/":{},"shop/api/":{},
"shop/api/key":{"current_version":1,"custom_metadata":{"owner":"canary"},"updated_time":"2026-11-20T11:03:17.242583997Z","versions":{"1":{"created_time":"2026-11-20T11:03:17.242583997Z","deletion_time":"","destroyed":false}}},
"shop/db":{"current_version":12,"versions":{"11":{"created_time":"2026-11-20T11:03:17Z","deletion_time":"","destroyed":false},"12":{"created_time":"2026-11-20T11:03:18Z","deletion_time":"","destroyed":false}}},
"shop/old":{"current_version":2,"versions":{"2":{"created_time":"1999-01-01T00:00:00Z","deletion_time":"1999-01-01T00:00:01Z","destroyed":false}}},
"shop/unwritten":{"current_version":0,"versions":{}}}}}`

func TestAMountIsReadByOneRequestWhereItCanBeScanned(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
	known := func(string, string, string) []string { return []string{"shop/db", "shop/vanished"} }
	inBubble(t, pollSecret, store, func(o *Options) { o.Known = known }, func(t *testing.T, r *rig) {
		synctest.Wait()
		seen := r.seen()
		want := []string{"secret/shop/api/key", "secret/shop/db", "secret/shop/old", "secret/shop/vanished"}
		if diff := cmp.Diff(want, paths(seen)); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		if o := seen["secret/shop/db"]; o.Version != 12 || o.State != Live || !o.At.Equal(at(t, "2026-11-20T11:03:18Z")) || o.Engine != events.EngineKV {
			t.Errorf("%+v, want version 12", o)
		}
		if o := seen["secret/shop/old"]; o.Version != 2 || o.State != Deleted || !o.At.Equal(at(t, "1999-01-01T00:00:01Z")) {
			t.Errorf("%+v, want it deleted", o)
		}
		if o := seen["secret/shop/vanished"]; o.State != Gone || !o.At.IsZero() {
			t.Errorf("%+v, want it gone", o)
		}
		if err := r.feed.Ready(); err != nil {
			t.Error(err)
		}
		for range 3 {
			after(67 * time.Second)
		}
		if got := store.times("secret/detailed-metadata?scan"); got != 4 {
			t.Errorf("scanned %d times, want 4", got)
		}
		if got := store.times("secret/metadata?list") + store.times("secret/metadata/shop/db"); got != 0 {
			t.Errorf("%d more requests were made", got)
		}
	})
}

func TestWhatCannotBeScannedIsListed(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
	}{
		{name: "Vault does not know the path", status: 404, body: `{"warnings":["Invalid path for a versioned K/V secrets engine."]}`},
		{name: "an old OpenBao does not", status: 404, body: `{"errors":["unsupported path"]}`},
		{name: "the operation is not known", status: 405, body: `{"errors":["unsupported operation"]}`},
		{name: "the parameter is not known", status: 400, body: `{"errors":["bad request"]}`},
		{name: "it is not allowed", status: 403, body: `{"errors":["permission denied"]}`},
		{name: "the answer cannot be read", status: 200, body: `{"data":{"key_info":[`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/detailed-metadata?scan", test.status, test.body)
			store.say("secret/metadata?list", 200, `{"data":{"keys":["a","b","folder/","locked/"]}}`)
			store.say("secret/metadata/folder?list", 200, `{"data":{"keys":["c"]}}`)
			// What may not be read costs only itself.
			store.say("secret/metadata/locked?list", 403, `{"errors":["permission denied"]}`)
			store.say("secret/metadata/b", 403, `{"errors":["permission denied"]}`)
			store.say("secret/metadata/a", 200, metadataOf(1, "2026-11-20T11:03:17Z", ""))
			store.say("secret/metadata/folder/c", 200, metadataOf(2, "2026-11-20T11:03:17Z", ""))
			inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
				after(30 * time.Minute)
				if diff := cmp.Diff([]string{"secret/a", "secret/folder/c"}, paths(r.seen())); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
				if err := r.feed.Ready(); err != nil {
					t.Error(err)
				}
				if got := store.times("secret/detailed-metadata?scan"); got != 1 {
					t.Errorf("tried to scan %d times in half an hour, want once", got)
				}
				if got := strings.Count(r.log.String(), "part of secret"); got != 1 {
					t.Errorf("told %d times, want once:\n%s", got, r.log)
				}
				after(time.Hour)
				if got := store.times("secret/detailed-metadata?scan"); got != 2 {
					t.Errorf("tried to scan %d times in one hour and a half, want twice", got)
				}
			})
		})
	}
}

func TestAMountThatMayNotBeReadAtAllIsToldAndNotReady(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", 403, `{"errors":["permission denied"]}`)
	store.say("secret/metadata?list", 200, `{"data":{"keys":["a","b"]}}`)
	store.say("secret/metadata/a", 403, `{"errors":["permission denied"]}`)
	store.say("secret/metadata/b", 403, `{"errors":["permission denied"]}`)
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		if err := r.feed.Ready(); err == nil || !strings.Contains(err.Error(), "store main: secret: ") || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%v, want what may not be read", err)
		}
		if got := strings.Count(r.log.String(), "reason=forbidden"); got != 1 {
			t.Errorf("told %d times, want once:\n%s", got, r.log)
		}
	})
}

func TestAnEmptyMountIsScannedAgain(t *testing.T) {
	store := newFakeStore(kv2)
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(10 * time.Second)
		if err := r.feed.Ready(); err != nil {
			t.Error(err)
		}
		store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
		after(70 * time.Second)
		if got := r.seen(); len(got) != 3 {
			t.Errorf("observed %v, want all three", paths(got))
		}
	})
}

func TestFailedPollsAreRepeatedLessAndLessOften(t *testing.T) {
	store := newFakeStore(kv2)
	begun := time.Time{}
	var tries []time.Duration
	store.do("secret/detailed-metadata?scan", func(*http.Request) (int, string) {
		if begun.IsZero() {
			begun = time.Now()
		}
		tries = append(tries, time.Since(begun))
		if len(tries) < 10 {
			// The store is away.
			return 0, ""
		}
		return http.StatusOK, scanned
	})
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(6 * time.Minute)
		var gaps []time.Duration
		for i := range tries[1:] {
			gaps = append(gaps, tries[i+1]-tries[i]-minGap)
		}
		for i, want := range []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
			time.Minute, time.Minute, time.Minute,
		} {
			if gaps[i] < want || gaps[i] > want+want/10 {
				t.Errorf("%v between two tries, want %v or up to a tenth more; all: %v", gaps[i], want, gaps)
			}
		}
		if len(r.seen()) != 3 || r.feed.Ready() != nil {
			t.Errorf("not read at last: %v", r.feed.Ready())
		}
		if log := r.log.String(); strings.Count(log, "cannot be read") != 1 || strings.Count(log, "can be read again") != 1 {
			t.Errorf("want one line for the fault, and one for its end:\n%s", log)
		}
		if failed, worked := r.count(t, "keyturn.openbao.polls", "failure"), r.count(t, "keyturn.openbao.polls", "success"); failed != 9 || worked < 1 {
			t.Errorf("%d failed and %d worked", failed, worked)
		}
	})
}

func TestPollsThatAreAskedForMeanwhileAreOne(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(10 * time.Second)
		for range 100 {
			r.feed.pipelines[0].intake.miss(t.Context(), dropped)
		}
		after(10 * time.Second)
		if got := store.times("secret/detailed-metadata?scan"); got != 2 && got != 3 {
			t.Errorf("polled %d times, want once more, or twice where it was asked for meanwhile", got)
		}
	})
}

func TestIntervalsAreNotAllTheSame(t *testing.T) {
	gaps := map[time.Duration]bool{}
	for range 100 {
		gap := jittered(time.Minute)
		if gap < 54*time.Second || gap > 66*time.Second {
			t.Errorf("%v, want a tenth of a minute less or more at most", gap)
		}
		gaps[gap] = true
	}
	if len(gaps) < 50 {
		t.Errorf("only %d different ones of 100", len(gaps))
	}
}

func TestStaticRolesArePolledWithoutTheirPasswords(t *testing.T) {
	store := newFakeStore(`{"database/":{"type":"database"},"ldap/":{"type":"ldap"}}`)
	store.say("database/static-roles?list", 200, `{"data":{"keys":["shop"]}}`)
	store.say("database/static-roles/shop", 200, `{"data":{"last_vault_rotation":"2026-11-20T11:03:06.5Z","username":"u","rotation_period":60}}`)
	store.say("ldap/static-role?list", 200, `{"data":{"keys":["mail","team/"]}}`)
	store.say("ldap/static-role/mail", 200, `{"data":{"last_vault_rotation":"2026-11-20T11:03:07Z"}}`)
	known := func(_, _, mount string) []string {
		if mount == "database" {
			return []string{"static-creds/shop", "static-creds/old"}
		}
		return nil
	}
	config := withToken + "{databaseMounts: [database], ldapMounts: [ldap]}}]"
	inBubble(t, config, store, func(o *Options) { o.Known = known }, func(t *testing.T, r *rig) {
		synctest.Wait()
		seen := r.seen()
		if diff := cmp.Diff([]string{"database/static-creds/old", "database/static-creds/shop", "ldap/static-cred/mail"}, paths(seen)); diff != "" {
			t.Fatalf("observed (-want +got):\n%s", diff)
		}
		if o := seen["database/static-creds/shop"]; o.State != Live || o.Engine != events.EngineDatabase || o.Version != 0 || !o.At.Equal(at(t, "2026-11-20T11:03:06.5Z")) {
			t.Errorf("%+v", o)
		}
		if o := seen["database/static-creds/old"]; o.State != Gone {
			t.Errorf("%+v, want it gone", o)
		}
		if o := seen["ldap/static-cred/mail"]; o.State != Live || o.Engine != events.EngineLDAP || !o.At.Equal(at(t, "2026-11-20T11:03:07Z")) {
			t.Errorf("%+v", o)
		}
		if slices.ContainsFunc(store.asked, func(path string) bool { return strings.Contains(path, "-cred") }) {
			t.Errorf("passwords were asked for: %v", store.asked)
		}
	})
}

func TestMountsAreFoundInNamespaces(t *testing.T) {
	const root = `{"team-a/kv/":{"type":"kv","options":{"version":"2"}}}`
	tests := []struct {
		name, namespace, mount string
		want                   string // the full path, empty for an error
	}{
		{name: "with a slash in its path", mount: "team-a/kv", want: "team-a/kv/x"},
		{name: "in a namespace", mount: "team-a/secret", want: "team-a/secret/x"},
		{name: "in a namespace in a namespace", mount: "team-a/inner/secret", want: "team-a/inner/secret/x"},
		{name: "in the namespace of the store", namespace: "team-a", mount: "secret", want: "team-a/secret/x"},
		{name: "in a namespace in that of the store", namespace: "team-a", mount: "inner/secret", want: "team-a/inner/secret/x"},
		{name: "nowhere", mount: "team-b/secret"},
		{name: "of another engine", namespace: "team-a", mount: "pki"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(root)
			store.say("team-a@sys/internal/ui/mounts", 200, `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}},"pki/":{"type":"pki"}}}}`)
			store.say("team-a/inner@sys/internal/ui/mounts", 200, `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}}}}}`)
			store.say("team-b@sys/internal/ui/mounts", 403, `{"errors":["permission denied"]}`)
			const one = `{"data":{"key_info":{"x":{"current_version":1,"versions":{"1":{"created_time":"2026-11-20T11:03:17Z"}}}}}}`
			for _, at := range []string{"team-a/kv", "team-a@secret", "team-a/inner@secret"} {
				store.say(at+"/detailed-metadata?scan", 200, one)
			}
			config := "stores: [{name: main, address: 'http://bao', auth: {token: t}, namespace: '" + test.namespace + "', poll: {mounts: [" + test.mount + "]}}]"
			inBubble(t, config, store, nil, func(t *testing.T, r *rig) {
				after(time.Second)
				got := paths(r.seen())
				if test.want == "" {
					if err := r.feed.Ready(); len(got) > 0 || err == nil || !strings.Contains(err.Error(), test.mount) {
						t.Errorf("observed %v; not ready for %v", got, err)
					}
					return
				}
				if diff := cmp.Diff([]string{test.want}, got); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTheStateThatMetadataTells(t *testing.T) {
	now := at(t, "2026-11-20T12:00:00Z")
	created, past, future := instant(at(t, "2026-11-20T11:00:00Z")), instant(at(t, "2026-11-20T11:30:00Z")), instant(at(t, "2026-11-20T12:00:01Z"))
	of := func(change func(*metadata)) *metadata {
		m := &metadata{CurrentVersion: 2}
		m.Versions = map[string]struct {
			CreatedTime  instant `json:"created_time"`
			DeletionTime instant `json:"deletion_time"`
			Destroyed    bool    `json:"destroyed"`
		}{"1": {CreatedTime: created, DeletionTime: past, Destroyed: true}, "2": {CreatedTime: created}}
		change(m)
		return m
	}
	current := func(deleted instant, destroyed bool) func(*metadata) {
		return func(m *metadata) {
			v := m.Versions["2"]
			v.DeletionTime, v.Destroyed = deleted, destroyed
			m.Versions["2"] = v
		}
	}
	tests := []struct {
		name     string
		metadata *metadata
		version  int64
		state    State
		at       instant
		bad      bool
	}{
		{name: "a version that is there", metadata: of(func(*metadata) {}), version: 2, state: Live, at: created},
		{name: "a deletion that is ahead", metadata: of(current(future, false)), version: 2, state: Live, at: created},
		{name: "a deletion", metadata: of(current(past, false)), version: 2, state: Deleted, at: past},
		{name: "a deletion just now", metadata: of(current(instant(now), false)), version: 2, state: Deleted, at: instant(now)},
		{name: "destroyed after it was deleted", metadata: of(current(past, true)), version: 2, state: Destroyed},
		{name: "never written", metadata: of(func(m *metadata) { m.CurrentVersion = 0 }), state: Gone},
		{name: "a version that is not among the versions", metadata: of(func(m *metadata) { m.CurrentVersion = 3 }), bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			version, state, at, ok := test.metadata.state(now)
			if ok == test.bad {
				t.Fatalf("%v", ok)
			}
			if !test.bad && (version != test.version || state != test.state || !at.Equal(time.Time(test.at))) {
				t.Errorf("version %d is %v at %v, want version %d %v at %v", version, state, at, test.version, test.state, time.Time(test.at))
			}
		})
	}
}
