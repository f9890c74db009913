package openbao

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const pollSecret = withToken + "{interval: 1m, mounts: [secret]}}]"

// scanned is an answer of OpenBao, with few of the fields that are not decoded.
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
		wantEqual(t, "observed", want, paths(seen))
		if o := seen["secret/shop/db"]; o.Version != 12 || o.State != Live || !o.At.Equal(at(t, "2026-11-20T11:03:18Z")) || o.Engine != events.EngineKV {
			t.Errorf("%+v, want version 12", o)
		}
		if o := seen["secret/shop/old"]; o.Version != 2 || o.State != Deleted || !o.At.Equal(at(t, "1999-01-01T00:00:01Z")) {
			t.Errorf("%+v, want it deleted", o)
		}
		if o := seen["secret/shop/vanished"]; o.State != Gone || !o.At.IsZero() || o.Path.Store != "main" || !slices.Equal(o.Servers, []string{"http://bao"}) {
			t.Errorf("%+v, want it gone from the store", o)
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
	for _, test := range []struct {
		name   string
		status int
		body   string
	}{
		{name: "Vault does not know the path", status: 404, body: `{"warnings":["Invalid path for a versioned K/V secrets engine."]}`},
		{name: "it is not allowed", status: 403, body: `{"errors":["permission denied"]}`},
		{name: "the answer cannot be read", status: 200, body: `{"data":{"key_info":[`},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("secret/detailed-metadata?scan", test.status, test.body)
			store.say("secret/metadata?list", 200, `{"data":{"keys":["a","b","folder/","locked/"]}}`)
			store.say("secret/metadata/folder?list", 200, `{"data":{"keys":["c"]}}`)
			// A path that may not be read does not fail the others.
			store.say("secret/metadata/locked?list", 403, `{"errors":["permission denied"]}`)
			store.say("secret/metadata/b", 403, `{"errors":["permission denied"]}`)
			store.say("secret/metadata/a", 200, metadataOf(1, "2026-11-20T11:03:17Z"))
			store.say("secret/metadata/folder/c", 200, metadataOf(2, "2026-11-20T11:03:17Z"))
			inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
				after(30 * time.Minute)
				wantEqual(t, "observed", []string{"secret/a", "secret/folder/c"}, paths(r.seen()))
				if err := r.feed.Ready(); err != nil {
					t.Error(err)
				}
				if got := store.times("secret/detailed-metadata?scan"); got != 1 {
					t.Errorf("tried to scan %d times in half an hour, want once", got)
				}
				if got := strings.Count(r.log.String(), "part of secret"); got != 1 {
					t.Errorf("logged %d times, want once:\n%s", got, r.log)
				}
				// This store ignores from where and how many names are wanted, which it shows once in a poll: at the root.
				if root, below := store.times("secret/metadata?list"), store.times("secret/metadata/folder?list"); below == 0 || root != 2*below {
					t.Errorf("listed the root %d times and a folder below %d times, want half as often", root, below)
				}
				after(time.Hour)
				if got := store.times("secret/detailed-metadata?scan"); got != 2 {
					t.Errorf("tried to scan %d times in one hour and a half, want twice", got)
				}
			})
		})
	}
}

func TestAKnownPathThatMayNotBeReadFailsNoPoll(t *testing.T) {
	const roles = withToken + "{databaseMounts: [database]}}]"
	for _, test := range []struct {
		name, config, known string
		answers             map[string]string
		request             string // of the known path
		status              int
		fails               bool
	}{
		{
			name: "in a mount that is scanned", config: pollSecret, known: "locked", request: "secret/metadata/locked", status: http.StatusForbidden,
			answers: map[string]string{"secret/detailed-metadata?scan": scanned},
		},
		{
			name: "of a static role", config: roles, known: "static-creds/locked", request: "database/static-roles/locked", status: http.StatusForbidden,
			answers: map[string]string{
				"database/static-roles?list": `{"data":{"keys":["shop"]}}`,
				"database/static-roles/shop": `{"data":{"last_vault_rotation":"1999-11-20T11:03:06.5Z"}}`,
			},
		},
		{
			name: "for now, as the store is sealed", config: pollSecret, known: "locked", request: "secret/metadata/locked", status: http.StatusServiceUnavailable,
			answers: map[string]string{"secret/detailed-metadata?scan": scanned}, fails: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(`{"secret/":{"type":"kv","options":{"version":"2"}},"database/":{"type":"database"}}`)
			for request, body := range test.answers {
				store.say(request, http.StatusOK, body)
			}
			store.say(test.request, test.status, forbidden)
			known := func(string, string, string) []string { return []string{test.known} }
			inBubble(t, test.config, store, func(o *Options) { o.Known = known }, func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				if failed, worked := r.count(t, "keyturn.openbao.polls", "failure"), r.count(t, "keyturn.openbao.polls", "success"); failed > 0 != test.fails || worked > 0 == test.fails {
					t.Errorf("%d polls failed and %d worked:\n%s", failed, worked, r.log)
				}
				for _, o := range r.seen() {
					if o.PolledBefore.IsZero() != test.fails || o.State != Live && o.State != Deleted {
						t.Errorf("observed %+v", o)
					}
				}
				if log := r.log.String(); strings.Count(log, "part of ") == 0 != test.fails || strings.Count(log, "cannot be read") != 1 {
					t.Errorf("want the log to tell once what cannot be read:\n%s", log)
				}
			})
		})
	}
}

func TestStaticRolesArePolledWithoutTheirPasswords(t *testing.T) {
	store := newFakeStore(`{"database/":{"type":"database"},"ldap/":{"type":"ldap"}}`)
	store.say("database/static-roles?list", 200, `{"data":{"keys":["shop"]}}`)
	store.say("database/static-roles/shop", 200, `{"data":{"last_vault_rotation":"2026-11-20T11:03:06.5Z","username":"u","rotation_period":60}}`)
	store.say("ldap/static-role?list", 200, `{"data":{"keys":["mail","team/"]}}`)
	store.say("ldap/static-role/mail", 200, `{"data":{"last_vault_rotation":"2026-11-20T11:03:07Z"}}`)
	store.say("ldap/static-role/team?list", 200, `{"data":{"keys":["mail"]}}`)
	store.say("ldap/static-role/team/mail", 200, `{"data":{"last_vault_rotation":"2026-11-20T11:03:08Z"}}`)
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
		want := []string{"database/static-creds/old", "database/static-creds/shop", "ldap/static-cred/mail", "ldap/static-cred/team/mail"}
		wantEqual(t, "observed", want, paths(seen))
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

func TestAPollRemembersWhenTheOneBeforeBegan(t *testing.T) {
	for _, test := range []struct{ name, config, request, answer string }{
		{name: "by a scan", config: pollSecret, request: "secret/detailed-metadata?scan", answer: scanned},
		{name: "by references", config: pollReferenced, request: "secret/metadata/shop/db", answer: metadataOf(1, "1999-01-01T00:00:00Z")},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say(test.request, http.StatusOK, test.answer)
			inBubble(t, test.config, store, referring(referenceTo("root", "secret", "shop/db")), func(t *testing.T, r *rig) {
				began := time.Now()
				synctest.Wait()
				if o := r.seen()["secret/shop/db"]; o.State != Live || !o.PolledBefore.IsZero() {
					t.Errorf("%+v, want the first poll to have none before it", o)
				}
				after(70 * time.Second)
				if got := r.seen()["secret/shop/db"].PolledBefore; !got.Equal(began) {
					t.Errorf("the poll before began at %v, want %v", got, began)
				}
				store.say(test.request, http.StatusServiceUnavailable, `{"errors":["Vault is sealed"]}`)
				after(10 * time.Minute)
				r.seen()
				store.say(test.request, http.StatusOK, test.answer)
				if got := r.nextWhere(t, "shop/db", Live).PolledBefore; got.Before(began.Add(50*time.Second)) || got.After(began.Add(2*time.Minute)) {
					t.Errorf("the poll before began at %v, want the last that worked", got)
				}
			})
		})
	}
}
