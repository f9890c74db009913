package openbao

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestWhatAnEntryMeansDependsOnTheEngine(t *testing.T) {
	kv := func(operation, path string) entry {
		return entry{engine: events.EngineKV, namespace: "root", operation: operation, path: path, mount: "kv"}
	}
	role := func(engine, operation, path string) entry {
		return entry{engine: engine, namespace: "root", operation: operation, path: path, mount: "db"}
	}
	tests := []struct {
		name  string
		entry entry
		kv    int
		path  string // of the secret in its mount; empty: it means nothing
		want  change
	}{
		{name: "a write to KV v1", entry: kv("create", "kv/app/x"), kv: kvV1, path: "app/x", want: change{operation: "create", complete: true, state: Live}},
		{name: "a write to KV v1 in a folder called data", entry: kv("update", "kv/data/x"), kv: kvV1, path: "data/x", want: change{operation: "update", complete: true, state: Live}},
		{name: "a recovery in KV v1", entry: kv("recover", "kv/app/x"), kv: kvV1, path: "app/x", want: change{operation: "recover", complete: true, state: Live}},
		{name: "a delete in KV v1", entry: kv("delete", "kv/metadata/x"), kv: kvV1, path: "metadata/x", want: change{operation: "delete", complete: true, state: Gone}},
		{name: "a write without a version to KV v2 has to be looked at", entry: kv("patch", "kv/data/x"), kv: kvV2, path: "x", want: change{operation: "patch"}},
		{name: "a destruction", entry: kv("update", "kv/destroy/x"), kv: kvV2, path: "x", want: change{operation: "destroy", state: Destroyed}},
		{name: "a delete of versions", entry: kv("update", "kv/delete/x/y"), kv: kvV2, path: "x/y", want: change{operation: "delete", state: Deleted}},
		{name: "the configuration of KV v2", entry: kv("update", "kv/config"), kv: kvV2},
		{name: "a patch of metadata", entry: kv("patch", "kv/metadata/x"), kv: kvV2},
		{name: "a verb without a path", entry: kv("update", "kv/undelete"), kv: kvV2},
		{name: "another mount", entry: kv("create", "kv2/app"), kv: kvV1},
		{name: "a static role's rotation", entry: role(events.EngineDatabase, "update", "db/rotate-role/shop"), path: "static-creds/shop", want: change{operation: "rotate", state: Live}},
		{name: "a static role's creation", entry: role(events.EngineDatabase, "create", "db/static-roles/shop"), path: "static-creds/shop", want: change{operation: "create", state: Live}},
		{name: "a static role's change may be a rotation", entry: role(events.EngineDatabase, "update", "db/static-roles/shop"), path: "static-creds/shop", want: change{operation: "update"}},
		{name: "a static role's recovery may be one to an earlier password", entry: role(events.EngineDatabase, "recover", "db/static-roles/shop"), path: "static-creds/shop", want: change{operation: "recover"}},
		{name: "a static role's end", entry: role(events.EngineDatabase, "delete", "db/static-roles/shop"), path: "static-creds/shop", want: change{operation: "delete", state: Gone}},
		{name: "a role that is not static", entry: role(events.EngineDatabase, "create", "db/roles/shop"), path: ""},
		{name: "the root's rotation", entry: role(events.EngineDatabase, "update", "db/rotate-root/shop"), path: ""},
		{name: "a rotation in LDAP", entry: role(events.EngineLDAP, "update", "db/rotate-role/shop"), path: "static-cred/shop", want: change{operation: "rotate", state: Live}},
		{name: "a static role's end in LDAP", entry: role(events.EngineLDAP, "delete", "db/static-role/shop"), path: "static-cred/shop", want: change{operation: "delete", state: Gone}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := judge(test.entry, test.entry.mount, test.kv)
			if ok != (test.path != "") {
				t.Fatalf("%v: %+v", ok, got)
			}
			if !ok {
				return
			}
			test.want.engine = test.entry.engine
			test.want.path = events.StorePath{Namespace: "root", Mount: test.entry.mount, Path: test.path}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(change{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheMountOfALine(t *testing.T) {
	tests := []struct{ name, point, namespace, path, want string }{
		{name: "in the root namespace", point: "secret/", path: "secret/data/x", want: "secret"},
		{name: "with slashes in it", point: "team/secret/", path: "team/secret/data/x", want: "team/secret"},
		{name: "with the namespace in front, as OpenBao has it", point: "team1/kv/", namespace: "team1", path: "kv/data/x", want: "kv"},
		{name: "without the namespace", point: "kv/", namespace: "team1", path: "kv/data/x", want: "kv"},
		{name: "called as the namespace is", point: "kv/kv/", namespace: "kv", path: "kv/kv/x", want: "kv"},
		{name: "not told", path: "kv/data/x", want: ""},
		{name: "not that of the path", point: "other/", path: "kv/data/x", want: ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := mountOf(test.point, test.namespace, test.path); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAMountThatNobodyTellsIsGuessed(t *testing.T) {
	tests := []struct{ name, engine, path, want string }{
		{name: "before data", engine: events.EngineKV, path: "team/secret/data/metadata/x", want: "team/secret"},
		{name: "before metadata", engine: events.EngineKV, path: "secret/metadata/data/x", want: "secret"},
		{name: "the first part of KV v1", engine: events.EngineKV, path: "kv/app/x", want: "kv"},
		{name: "before the roles of a database", engine: events.EngineDatabase, path: "team/db/static-roles/x", want: "team/db"},
		{name: "before the rotation of a database", engine: events.EngineDatabase, path: "team/db/rotate-role/data/x", want: "team/db"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := guessMount(entry{engine: test.engine, path: test.path}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
