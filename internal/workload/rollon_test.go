package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestRollOn(t *testing.T) {
	runWantTests(t, []wantTest{
		{
			name: "auto wants what is referenced, of every kind: secrets", on: rollOn("auto"), of: "secret/db",
			ref: reads("user"), want: byAuto, keys: "user", by: "keyturn.dev/roll-on: auto",
		},
		{name: "a name wants also what is only used to pull", on: rollOn("auto,secret/registry"), of: "secret/registry", ref: pulls(), want: byName},
		{name: "secrets wants Secrets that are referenced", on: rollOn("secrets"), of: "secret/db", ref: reads(), want: byAuto},
		{name: "a name wants the source without a reference, with all keys", on: rollOn("secret/db"), of: "secret/db", want: byName},
		{
			name: "a name wants the keys that are read, where there is a reference", on: rollOn("secret/db"), of: "secret/db",
			ref: reads("password", "user"), want: byName, keys: "password user",
		},
		{name: "a star is any characters", on: rollOn("configmap/app-*"), of: "configmap/app-web.v2", want: byName},
		{name: "one key of a source that is not referenced", on: rollOn("secret/db#password"), of: "secret/db", want: byName, keys: "password", named: "password"},
		{
			name: "a key that is not read, of a source that is, is not wanted", on: rollOn("secret/db#password"),
			of: "secret/db", ref: reads("user"), want: KeyNotRead, by: "keyturn.dev/roll-on: secret/db#password",
		},
		{
			name: "several keys are joined, in order and once", on: rollOn("secret/db#user, secret/db#password, secret/d?#user"),
			of: "secret/db", want: byName, keys: "password user", named: "password user", by: "keyturn.dev/roll-on: secret/db#user",
		},
		{
			name: "the whole source beats one key of it", on: rollOn("secret/db#password, secret/db"), of: "secret/db",
			ref: reads("user"), want: byName, keys: "user", named: "password", by: "keyturn.dev/roll-on: secret/db",
		},
		{name: "an exclusion can be a pattern", on: rollOn("auto, ! configmap/*-noisy"), of: "configmap/very-noisy", ref: reads(), want: Excluded},
		{
			name: "an exclusion of keys leaves the others", on: rollOn("auto, !secret/db#ttl, ! secret/db#_raw, !secret/other#user"), of: "secret/db",
			ref: reads(), want: byAuto, except: "_raw ttl", by: "keyturn.dev/roll-on: auto",
		},
		{
			name: "an exclusion of a key leaves the others that are read", on: rollOn("auto, !secret/d*#ttl"), of: "secret/db", ref: reads("password", "ttl"),
			want: byAuto, keys: "password", except: "ttl",
		},
		{
			name: "an exclusion of the only key that is read", on: rollOn("auto, !secret/db#ttl"), of: "secret/db", ref: reads("ttl"),
			want: Excluded, by: "keyturn.dev/roll-on: !secret/db#ttl",
		},
		{name: "an exclusion of a key beats that it is named", on: rollOn("secret/db#ttl, !secret/db#ttl"), of: "secret/db", want: Excluded},
		{name: "an exclusion of a key beats that all are named", on: rollOn("secret/db#*, !secret/db#.dot"), of: "secret/db", ref: reads("a"), want: byName, except: ".dot"},
		{name: "an exclusion of each key is one of all", on: rollOn("auto, !configmap/app#*"), of: "configmap/app", ref: reads(), want: Excluded},
		{name: "an exclusion of a key is none of another kind", on: rollOn("auto, !configmap/db#ttl"), of: "secret/db", ref: reads(), want: byAuto},
		{name: "a star is every key of a source of which one is read", on: rollOn("secret/db#*"), of: "secret/db", ref: reads("user"), want: byName},
		{
			name: "a star includes the keys that are named beside it", on: rollOn("secret/db#password, secret/db#*"),
			of: "secret/db", ref: reads("user"), want: byName, named: "password", by: "keyturn.dev/roll-on: secret/db#*",
		},
		{name: "with --reloader a name in roll-on is the keys that are read", on: rollOn("secret/db"), strict: true, of: "secret/db", ref: reads("user"), want: byName, keys: "user"},
		{name: "spaces, new lines and empty items do not matter", on: rollOn(" secret/a ,\n\tsecret/db,,\n"), of: "secret/db", want: byName},
		{name: "the template's is read where the workload has none", pods: rollOn("secret/db"), of: "secret/db", want: byName},
		{name: "the template's is not read where the workload has one", on: rollOn("configmaps"), pods: rollOn("secret/db"), of: "secret/db", ref: reads(), want: NotWanted},
	})
}

func TestRollOnErrors(t *testing.T) {
	const noStore = "what precedes the colon is not the name of a store, and a mount with a colon needs that in front"
	const noKeys = "it is not known which of its keys change, so an exclusion is of all"
	tests := []struct{ name, item, want string }{
		{"a word that is none", "everything", "not understood"},
		{"a path of a store that is too long", "openbao:" + strings.Repeat("a", 1025), "not a path, nor a pattern of one"},
		{"a store that is not a name", "openbao:My_Store:kv/shop/db", noStore},
		{"a kind that is none", "deployment/web", "unknown kind"},
		{"none among others", "none", "none must be the only item"},
		{"a name that Kubernetes does not allow", "secret/My_DB", "not a name, nor a pattern of one"},
		{"an empty key", "secret/db#", "what follows # is not a data key"},
		{"an exclusion of one key of what the driver mounts", "!secretproviderclass/db#password", noKeys},
		{"an exclusion of one key of a path", "!openbao:kv/shop/db#ttl", noKeys},
		{"an exclusion of what is no key", "!secret/db#a b", "what follows # is not a data key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			optIn, errs := parseOptIn(rollOn("secret/a,"+tt.item+",secret/z"), nil, Reading{All: true})
			if len(errs) != 1 {
				t.Fatalf("%d errors, want one: %v", len(errs), errs)
			}
			want := &itemError{annotation: AnnotationRollOn, item: tt.item, problem: tt.want + ": " + rollOnAllowed}
			testkit.WantEqual(t, "error", error(want), errs[0], cmp.AllowUnexported(itemError{}))
			for _, text := range []string{"secret/a", "secret/z"} {
				if got := optIn.Wants(source(t, text), nil, false).Reason; got != byName {
					t.Errorf("the valid neighbour %s is %s", text, got)
				}
			}
		})
	}
}

func TestWhatIsAllowedNamesEachKind(t *testing.T) {
	for word, kind := range autoWords {
		if !strings.Contains(rollOnAllowed, word) || !strings.Contains(rollOnAllowed, string(kind)) {
			t.Errorf("%s or %s is not in %q", word, kind, rollOnAllowed)
		}
	}
}

func TestRollOnThatCannotBeReadIsAList(t *testing.T) {
	for _, text := range []string{"", " ", ",\n,", "everything"} {
		optIn, errs := parseOptIn(rollOn(text), rollOn("auto"), Reading{All: true})
		if len(errs) != 1 {
			t.Errorf("%q: errors %v, want one", text, errs)
		}
		if !optIn.Empty() {
			t.Errorf("%q: the template or roll-all counted", text)
		}
	}
}
