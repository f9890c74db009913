package workload

import (
	"testing"

	"github.com/keyturn/keyturn/internal/reloader"
)

func TestEveryKeyCountsWhereAnItemSaysSo(t *testing.T) {
	const secretReload = "secret.reloader.stakater.com/reload"
	runWantTests(t, []wantTest{
		{name: "a star is every key of a source of which one is read", on: rollOn("secret/db#*"), of: "secret/db", ref: reads("user"), want: byName},
		{
			name: "a star includes the keys that are named beside it", on: rollOn("secret/db#password, secret/db#*"),
			of: "secret/db", ref: reads("user"), want: byName, by: "keyturn.dev/roll-on: secret/db#*",
		},
		{
			name: "with --reloader a name of Reloader is every key", on: map[string]string{secretReload: "db"}, strict: true,
			of: "secret/db", ref: reads("user"), want: byName, by: secretReload + ": db",
		},
		{name: "with --reloader a name in roll-on is the keys that are read", on: rollOn("secret/db"), strict: true, of: "secret/db", ref: reads("user"), want: byName, keys: "user"},
	})
}

func TestWithReloaderNamesAreCompiledAsReloaderDoes(t *testing.T) {
	tests := []struct {
		item, name           string
		ordinary, asInItself bool
	}{
		{"foo", "foo", true, true},
		{"foo|bar", "bar", true, true},
		{"foo|bar", "foobaz", false, true},
		{"foo|bar", "baz", false, false},
		{"app-.*", "app-one", true, true},
		{"a.b", "a-b", true, true},
		{`a\.b`, "a-b", false, false},
	}
	for _, tt := range tests {
		for strict, want := range map[bool]bool{false: tt.ordinary, true: tt.asInItself} {
			optIn, errs := parseOptIn(map[string]string{"configmap.reloader.stakater.com/reload": tt.item}, nil, Reading{Reloader: strict})
			if got := optIn.Wants(source(t, "configmap/"+tt.name), nil, false).Wanted(); got != want || len(errs) > 0 {
				t.Errorf("%s and %s, with --reloader %t: got %t, want %t; errors %v", tt.item, tt.name, strict, got, want, errs)
			}
		}
	}
}

func TestTheKeysOfReloadersAnnotationsAreThoseThatAreConfigured(t *testing.T) {
	keys := reloader.Default()
	keys.Auto, keys.Secret, keys.Search = "example.org/auto", "example.org/secrets", "example.org/search"
	tests := []struct {
		name               string
		workload, template map[string]string
		source             string
		want               WantReason
		by                 string
	}{
		{"auto", map[string]string{"example.org/auto": "true"}, nil, "secret/db", byAuto, "example.org/auto"},
		{"search", map[string]string{"example.org/search": "true"}, nil, "configmap/app", bySearch, "example.org/search"},
		{
			"a key of before does not keep the template from being read",
			map[string]string{"reloader.stakater.com/auto": "false"},
			map[string]string{"example.org/auto": "true"},
			"secret/db", byAuto, "example.org/auto",
		},
		{"a configured key does", map[string]string{"example.org/auto": "false"}, map[string]string{"example.org/auto": "true"}, "secret/db", NotWanted, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			optIn, errs := parseOptIn(tt.workload, tt.template, Reading{Keys: keys})
			got := optIn.Wants(source(t, tt.source), reads(), true)
			if got.Reason != tt.want || got.Annotation != tt.by || len(errs) > 0 {
				t.Errorf("got %s by %q, want %s by %q; errors %v", got.Reason, got.Annotation, tt.want, tt.by, errs)
			}
		})
	}
	t.Run("one key may be that of several", func(t *testing.T) {
		keys := reloader.Default()
		keys.Auto, keys.AutoSecret, keys.AutoConfigMap, keys.Secret, keys.ConfigMap = "a/auto", "a/auto", "a/auto", "a/names", "a/names"
		for value, annotation := range map[string]string{"app": "a/names", "true": "a/auto"} {
			optIn, errs := parseOptIn(map[string]string{annotation: value}, nil, Reading{Keys: keys})
			for _, of := range []string{"secret/app", "configmap/app"} {
				if got := optIn.Wants(source(t, of), reads(), false); !got.Wanted() || got.Annotation != annotation || len(errs) > 0 {
					t.Errorf("%s: %s: got %s by %q for %s; errors %v", annotation, value, got.Reason, got.Annotation, of, errs)
				}
			}
		}
	})
}
