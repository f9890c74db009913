package workload

import (
	"regexp"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestReloadersAnnotationsOptInAndOut(t *testing.T) {
	type a = map[string]string
	const (
		auto             = "reloader.stakater.com/auto"
		search           = "reloader.stakater.com/search"
		secretAuto       = "secret.reloader.stakater.com/auto"
		secretReload     = "secret.reloader.stakater.com/reload"
		configMapReload  = "configmap.reloader.stakater.com/reload"
		classReload      = "secretproviderclass.reloader.stakater.com/reload"
		secretExclude    = "secrets.exclude.reloader.stakater.com/reload"
		configMapExclude = "configmaps.exclude.reloader.stakater.com/reload"
		classExclude     = "secretproviderclasses.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		// Auto and search want what is referenced.
		{name: "auto wants what is referenced, of every kind: secrets", on: a{auto: "true"}, of: "secret/db", ref: reads("user"), want: byAuto, keys: "user", by: auto + ": true"},
		{name: "auto does not want what is not referenced", on: a{auto: "true"}, of: "secret/db", want: NotWanted},
		{name: "auto of one kind wants that kind", on: a{secretAuto: "true"}, of: "secret/db", ref: reads(), want: byAuto, by: secretAuto + ": true"},
		{name: "auto of one kind counts where auto is false", on: a{auto: "false", secretAuto: "true"}, of: "secret/db", ref: reads(), want: byAuto},
		{
			name: "search wants what is referenced and matches", on: a{search: "true"}, of: "secret/db", ref: reads("user"),
			match: true, want: bySearch, keys: "user", by: search + ": true",
		},
		{name: "search does not want what is not referenced", on: a{search: "true"}, of: "secret/db", match: true, want: NotWanted},
		{name: "search must be the word true", on: a{search: "True"}, of: "secret/db", ref: reads(), match: true, want: NotWanted},
		{name: "auto wants SecretProviderClasses", on: a{auto: "true"}, of: "secretproviderclass/db", ref: reads(), want: byAuto},
		{name: "a SecretProviderClass is wanted by its name", on: a{classReload: "web,d."}, of: "secretproviderclass/db", want: byName},
		{name: "or excluded", on: a{auto: "true", classExclude: "db"}, of: "secretproviderclass/db", ref: reads(), want: Excluded},
		{name: "auto is on in each spelling of true", on: a{auto: "T"}, of: "secret/db", ref: reads(), want: byAuto},

		// Names are expressions for the whole name.
		{name: "a name wants the source without a reference", on: a{secretReload: "db"}, of: "secret/db", want: byName, by: secretReload + ": db"},
		{name: "a name wants the keys that are read, where there is a reference", on: a{secretReload: "db"}, of: "secret/db", ref: reads("user"), want: byName, keys: "user"},
		{name: "names are a list whose items are trimmed", on: a{secretReload: "a , \n db ,,"}, of: "secret/db", want: byName},
		{
			name: "an asterisk that a name begins with has no effect with --reloader, as for Reloader: an end of a name",
			on:   a{configMapReload: "*-config"}, strict: true, of: "configmap/app-config", want: byName,
		},
		{name: "an expression may ignore the case", on: a{secretReload: "(?i)DB"}, of: "secret/db", want: byName},
		{
			name: "with --reloader a name of Reloader is every key", on: a{secretReload: "db"}, strict: true,
			of: "secret/db", ref: reads("user"), want: byName, by: secretReload + ": db",
		},

		// Exclusions beat what is included.
		{name: "an exclusion beats auto", on: a{auto: "true", secretExclude: "noisy, db"}, of: "secret/db", ref: reads(), want: Excluded},
		{
			name: "an exclusion beats search", on: a{search: "true", configMapExclude: "app"}, of: "configmap/app",
			ref: reads(), match: true, want: Excluded, by: configMapExclude + ": app",
		},
		{name: "an exclusion is an exact name, and no expression", on: a{auto: "true", secretExclude: "a.b"}, of: "secret/a-b", ref: reads(), want: byAuto},
		{name: "an exclusion of the template is not read", on: a{auto: "true"}, pods: a{secretExclude: "db"}, of: "secret/db", ref: reads(), want: byAuto},

		// The template is read where the workload says nothing.
		{name: "the template's auto is read where the workload says nothing", pods: a{auto: "true"}, of: "secret/db", ref: reads(), want: byAuto},
		{name: "the template's names are read where the workload says nothing", pods: a{secretReload: "db"}, of: "secret/db", want: byName},
		{name: "the template's names are not read where the workload says auto, whatever it says", on: a{auto: "false"}, pods: a{secretReload: "db"}, of: "secret/db", want: NotWanted},
		{
			name: "what the workload says of one kind leaves the template's of another", on: a{secretReload: "other"},
			pods: a{auto: "true"}, of: "configmap/app", ref: reads(), want: byAuto,
		},

		// Whoever says no opts out of roll-all.
		{name: "auto that is false opts out of roll-all", on: a{auto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
		{name: "auto of one kind that is false opts out of roll-all for it", on: a{secretAuto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
		{name: "auto that is empty does not opt out of roll-all", on: a{auto: ""}, all: true, of: "secret/db", ref: reads(), want: byAll},
		{name: "the template's auto that is false opts out of roll-all", pods: a{auto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
	})
}

func TestReloaderErrors(t *testing.T) {
	const auto, reload = "reloader.stakater.com/auto", "secret.reloader.stakater.com/reload"
	optIn, errs := parseOptIn(map[string]string{auto: "yes", reload: "db,("}, nil, Reading{All: true})
	want := []string{
		reload + `: item "(": missing closing ): allowed is the name of a secret, or a regular expression for all of it`,
		auto + `: item "yes": read as "false": allowed are "true" and "false"`,
	}
	testkit.WantEqual(t, "errors", want, lines(errs))
	if optIn.Wants(db, nil, false).Reason != byName || optIn.Wants(app, reads(), false).Wanted() {
		t.Error("the valid item of the list is not wanted, or auto that cannot be read does not opt out of roll-all")
	}
}

// TestReloaderBoundsAllExpressions uses many expressions, each of which alone is allowed.
func TestReloaderBoundsAllExpressions(t *testing.T) {
	annotation := "secret.reloader.stakater.com/reload"
	for _, strict := range []bool{false, true} {
		list := strings.Repeat(`x{99},`, 100) + `my.config,db,app-\d,(?:a?){300}`
		optIn, errs := parseOptIn(map[string]string{annotation: list}, nil, Reading{Reloader: strict})
		if len(errs) != maxItemErrors || !strings.HasSuffix(errs[maxItemErrors-1].Error(), ". 89 more items are invalid") {
			t.Errorf("%d errors, want 99 for the items that do not fit:\n%v", len(errs), errs)
		}
		for _, name := range []string{"secret/" + strings.Repeat("x", 99), "secret/my-config", "secret/db", "secret/app-7"} {
			if got := optIn.Wants(source(t, name), nil, false).Reason; got != byName {
				t.Errorf("%s is %s, with --reloader %t", name, got, strict)
			}
		}
	}
}

func TestReloadersUsersHaveRoomForTheirExpressions(t *testing.T) {
	for _, expression := range []string{"app-.*", ".*-config", "team-(a|b)-.*", "(shop|bank)-db", `web-v[0-9]+`, `(?i)App-.*`, "^app-.*$"} {
		t.Run(expression, func(t *testing.T) {
			list := strings.Repeat(expression+",", 24)
			if _, errs := parseOptIn(map[string]string{"secret.reloader.stakater.com/reload": list}, nil, Reading{}); len(errs) > 0 {
				t.Error(errs[0])
			}
		})
	}
}

func TestANameWithDotsIsMatchedAsAnExpression(t *testing.T) {
	for _, item := range []string{"a.b", "my.config.v1", "a.b-c.d"} {
		matcher, _, err := reloaderReader{}.name(item, 0)
		testkit.Must(t, err)
		expression := regexp.MustCompile("^(?:" + item + ")$")
		for _, name := range []string{"a.b", "a-b", "ab", "a..b", "my.config.v1", "my-config-v1", "my.config-v2", "my.config.v11", "a.b-c.d", "axb-cxd", ""} {
			if got := matcher.MatchString(name); got != expression.MatchString(name) {
				t.Errorf("%s matches %q: %t", item, name, got)
			}
		}
	}
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
