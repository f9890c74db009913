package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRollOn(t *testing.T) {
	runWantTests(t, []wantTest{
		{
			name: "auto wants what is referenced, of every kind: secrets", on: rollOn("auto"), of: "secret/db",
			ref: reads("user"), want: byAuto, keys: "user", by: "keyturn.dev/roll-on: auto",
		},
		{name: "auto does not want what is not referenced", on: rollOn("auto"), of: "secret/db", want: NotWanted},
		{name: "auto does not want what is only used to pull", on: rollOn("auto"), of: "secret/registry", ref: pulls(), want: OnlyPulled},
		{name: "a name wants also what is only used to pull", on: rollOn("auto,secret/registry"), of: "secret/registry", ref: pulls(), want: byName},
		{name: "secrets wants Secrets that are referenced", on: rollOn("secrets"), of: "secret/db", ref: reads(), want: byAuto},
		{name: "secrets does not want ConfigMaps", on: rollOn("secrets"), of: "configmap/app", ref: reads(), want: NotWanted},
		{name: "a name wants the source without a reference, with all keys", on: rollOn("secret/db"), of: "secret/db", want: byName},
		{
			name: "a name wants the keys that are read, where there is a reference", on: rollOn("secret/db"), of: "secret/db",
			ref: reads("password", "user"), want: byName, keys: "password user",
		},
		{name: "a name is of one kind", on: rollOn("secret/db"), of: "configmap/db", ref: reads(), want: NotWanted},
		{name: "a name is the whole name", on: rollOn("secret/db"), of: "secret/db-2", ref: reads(), want: NotWanted},
		{name: "a dot in a name is a dot", on: rollOn("secret/a.b"), of: "secret/a-b", want: NotWanted},
		{name: "a star is any characters", on: rollOn("configmap/app-*"), of: "configmap/app-web.v2", want: byName},
		{name: "a pattern is for the whole name", on: rollOn("configmap/app-*"), of: "configmap/my-app-web", want: NotWanted},
		{name: "a question mark is not two", on: rollOn("configmap/app-?"), of: "configmap/app-12", want: NotWanted},
		{name: "one key of a source that is not referenced", on: rollOn("secret/db#password"), of: "secret/db", want: byName, keys: "password"},
		{name: "one key of those that are read", on: rollOn("secret/db#password"), of: "secret/db", ref: reads("password", "user"), want: byName, keys: "password"},
		{
			name: "a key that is not read, of a source that is, is not wanted", on: rollOn("secret/db#password"),
			of: "secret/db", ref: reads("user"), want: KeyNotRead, by: "keyturn.dev/roll-on: secret/db#password",
		},
		{
			name: "several keys are joined, in order and once", on: rollOn("secret/db#user, secret/db#password, secret/d?#user"),
			of: "secret/db", want: byName, keys: "password user", by: "keyturn.dev/roll-on: secret/db#user",
		},
		{
			name: "the whole source beats one key of it", on: rollOn("secret/db#password, secret/db"), of: "secret/db",
			ref: reads("user"), want: byName, keys: "user", by: "keyturn.dev/roll-on: secret/db",
		},
		{
			name: "auto beats one key of a source that is referenced", on: rollOn("secret/db#password, auto"), of: "secret/db",
			ref: reads("password", "user"), want: byAuto, keys: "password user", by: "keyturn.dev/roll-on: auto",
		},
		{name: "an exclusion beats auto", on: rollOn("auto, !configmap/noisy"), of: "configmap/noisy", ref: reads(), want: Excluded},
		{name: "an exclusion can be a pattern", on: rollOn("auto, ! configmap/*-noisy"), of: "configmap/very-noisy", ref: reads(), want: Excluded},
		{name: "spaces, new lines and empty items do not matter", on: rollOn(" secret/a ,\n\tsecret/db,,\n"), of: "secret/db", want: byName},
		{name: "the template's is read where the workload has none", pods: rollOn("secret/db"), of: "secret/db", want: byName},
		{name: "the template's is not read where the workload has one", on: rollOn("configmaps"), pods: rollOn("secret/db"), of: "secret/db", ref: reads(), want: NotWanted},
		{name: "none of the workload beats the template's list", on: rollOn("none"), pods: rollOn("auto"), of: "secret/db", ref: reads(), want: NotWanted},
	})
}

func TestRollOnErrors(t *testing.T) {
	const allowed = "allowed are none, or any of auto, secrets, configmaps, secretproviderclasses, openbao, <kind>/<name>, <kind>/<name>#<key>, " +
		"<kind>/<name>#* and !<kind>/<name>, where <kind> is secret or configmap or secretproviderclass, and openbao:<mount>/<path> or openbao:<store>:<mount>/<path>; " +
		"<name> and <path> may have * and ?"
	const noStore = "what precedes the colon is not the name of a store, and a mount with a colon needs that in front"
	tests := []struct{ name, item, want string }{
		{"a word that is none", "everything", "not understood"},
		{"a name without a kind", "db", "not understood"},
		{"a path of a store that is empty", "openbao:", "not a path, nor a pattern of one"},
		{"a path of a store with a space", "openbao:kv/shop db", "not a path, nor a pattern of one"},
		{"a path of a store that is too long", "openbao:" + strings.Repeat("a", 1025), "not a path, nor a pattern of one"},
		{"a path of a store with an empty key", "openbao:kv/shop/db#", "what follows # is not a key"},
		{"a store that is not a name", "openbao:My_Store:kv/shop/db", noStore},
		{"a store without a name", "openbao::kv/shop/db", noStore},
		{"a path of a store written as a kind", "openbao/kv", "unknown kind"},
		{"a kind that is none", "deployment/web", "unknown kind"},
		{"a kind in the plural", "secrets/db", "unknown kind"},
		{"none among others", "none", "none must be the only item"},
		{"an empty name", "secret/", "not a name, nor a pattern of one"},
		{"a name that Kubernetes does not allow", "secret/My_DB", "not a name, nor a pattern of one"},
		{"a name that is too long", "secret/" + strings.Repeat("a", 254), "not a name, nor a pattern of one"},
		{"a class of characters", "secret/app-[ab]", "not a name, nor a pattern of one"},
		{"an empty key", "secret/db#", "what follows # is not a data key"},
		{"a key that is a pattern", "secret/db#pass*", "what follows # is not a data key"},
		{"an exclusion of nothing", "!", "not understood"},
		{"an exclusion of one key", "!secret/db#password", "an exclusion is of all keys"},
		{"an exclusion of every key", "!secret/db#*", "an exclusion is of all keys"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			optIn, errs := parseOptIn(rollOn("secret/a,"+tt.item+",secret/z"), nil, Reading{All: true})
			if len(errs) != 1 {
				t.Fatalf("%d errors, want one: %v", len(errs), errs)
			}
			want := &itemError{annotation: AnnotationRollOn, item: tt.item, problem: tt.want, allowed: allowed}
			if diff := cmp.Diff(error(want), errs[0], cmp.AllowUnexported(itemError{})); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			for _, text := range []string{"secret/a", "secret/z"} {
				if got := optIn.Wants(source(t, text), nil, false).Reason; got != byName {
					t.Errorf("the valid neighbour %s is %s", text, got)
				}
			}
			if got := optIn.Wants(source(t, "configmap/other"), reads(), false).Reason; got != NotWanted {
				t.Errorf("another source is %s", got)
			}
		})
	}
}

func TestWhatIsAllowedNamesEachKind(t *testing.T) {
	for _, k := range rollOnKinds {
		if !strings.Contains(rollOnAllowed, k.word) || !strings.Contains(rollOnAllowed, string(k.kind)) {
			t.Errorf("%s or %s is not in %q", k.word, k.kind, rollOnAllowed)
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
