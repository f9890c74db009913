package openbao

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestWhatAnEntryMeansDependsOnTheEngine(t *testing.T) {
	line := func(operation, path string) entry { return entry{namespace: "root", operation: operation, path: path} }
	const database, ldap = events.EngineDatabase, events.EngineLDAP
	for _, test := range []struct {
		name  string
		entry entry
		// engine is KV if it is empty. The mount is kv, or db for a role.
		engine  string
		isPlain bool
		path    string // of the secret in its mount; empty: it means nothing
		want    change
	}{
		{name: "a write to KV v1", entry: line("create", "kv/app/x"), isPlain: true, path: "app/x", want: change{operation: "create", state: Live}},
		{name: "a delete in KV v1", entry: line("delete", "kv/metadata/x"), isPlain: true, path: "metadata/x", want: change{operation: "delete", state: Gone}},
		{name: "a write without a version to KV v2 has to be looked at", entry: line("patch", "kv/data/x"), path: "x", want: change{operation: "patch", state: Live}},
		{name: "a delete of versions", entry: line("update", "kv/delete/x/y"), path: "x/y", want: change{operation: "delete", state: Deleted}},
		{name: "the configuration of KV v2", entry: line("update", "kv/config")},
		{name: "a static role's rotation", entry: line("update", "db/rotate-role/shop"), engine: database, path: "static-creds/shop", want: change{operation: "rotate", state: Live}},
		{name: "a static role's creation", entry: line("create", "db/static-roles/shop"), engine: database, path: "static-creds/shop", want: change{operation: "create", state: Live}},
		{name: "a static role's change may be a rotation", entry: line("update", "db/static-roles/shop"), engine: database, path: "static-creds/shop", want: change{operation: "update"}},
		{name: "a static role's recovery may be one to an earlier password", entry: line("recover", "db/static-roles/shop"), engine: database, path: "static-creds/shop", want: change{operation: "recover"}},
		{name: "a static role's end", entry: line("delete", "db/static-roles/shop"), engine: database, path: "static-creds/shop", want: change{operation: "delete", state: Gone}},
		{name: "a role that is not static", entry: line("create", "db/roles/shop"), engine: database, path: ""},
		{name: "a rotation in LDAP", entry: line("update", "db/rotate-role/shop"), engine: ldap, path: "static-cred/shop", want: change{operation: "rotate", state: Live}},
		{name: "a static role's end in LDAP", entry: line("delete", "db/static-role/shop"), engine: ldap, path: "static-cred/shop", want: change{operation: "delete", state: Gone}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mount, _, _ := strings.Cut(test.entry.path, "/")
			if test.engine == "" {
				mount = "kv"
			}
			got, ok := judge(&test.entry, engineMount{namespace: "root", path: mount, engine: orElse(test.engine, events.EngineKV), isPlain: test.isPlain})
			if ok != (test.path != "") {
				t.Fatalf("%v: %+v", ok, got)
			}
			if !ok {
				return
			}
			test.want.path = test.path
			wantEqual(t, "change", test.want, got)
		})
	}
}
