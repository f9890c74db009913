package workload

import (
	"regexp"
	"strings"
	"testing"
)

func TestReloadersNamesAreExpressionsForTheWholeName(t *testing.T) {
	type a = map[string]string
	const (
		secretReload    = "secret.reloader.stakater.com/reload"
		configMapReload = "configmap.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		{name: "a name wants the source without a reference", on: a{secretReload: "db"}, of: "secret/db", want: byName, by: secretReload + ": db"},
		{name: "a name wants the keys that are read, where there is a reference", on: a{secretReload: "db"}, of: "secret/db", ref: reads("user"), want: byName, keys: "user"},
		{name: "names are a list whose items are trimmed", on: a{secretReload: "a , \n db ,,"}, of: "secret/db", want: byName},
		{name: "a name is an expression", on: a{secretReload: "db-.*"}, of: "secret/db-main", want: byName, by: secretReload + ": db-.*"},
		{
			name: "an asterisk that a name begins with has no effect with --reloader, as for Reloader: an end of a name",
			on:   a{configMapReload: "*-config"}, strict: true, of: "configmap/app-config", want: byName,
		},
		{name: "an expression may ignore the case", on: a{secretReload: "(?i)DB"}, of: "secret/db", want: byName},
	})
}

func TestReloadersExclusionsBeatWhatItIncludes(t *testing.T) {
	type a = map[string]string
	const (
		auto             = "reloader.stakater.com/auto"
		search           = "reloader.stakater.com/search"
		secretExclude    = "secrets.exclude.reloader.stakater.com/reload"
		configMapExclude = "configmaps.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		{name: "an exclusion beats auto", on: a{auto: "true", secretExclude: "noisy, db"}, of: "secret/db", ref: reads(), want: Excluded},
		{
			name: "an exclusion beats search", on: a{search: "true", configMapExclude: "app"}, of: "configmap/app",
			ref: reads(), match: true, want: Excluded, by: configMapExclude + ": app",
		},
		{name: "an exclusion is an exact name, and no expression", on: a{auto: "true", secretExclude: "a.b"}, of: "secret/a-b", ref: reads(), want: byAuto},
		{name: "an exclusion of the template is not read", on: a{auto: "true"}, pods: a{secretExclude: "db"}, of: "secret/db", ref: reads(), want: byAuto},
	})
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
		if err != nil {
			t.Fatal(err)
		}
		expression := regexp.MustCompile("^(?:" + item + ")$")
		for _, name := range []string{"a.b", "a-b", "ab", "a..b", "my.config.v1", "my-config-v1", "my.config-v2", "my.config.v11", "a.b-c.d", "axb-cxd", ""} {
			if got := matcher.match(name); got != expression.MatchString(name) {
				t.Errorf("%s matches %q: %t", item, name, got)
			}
		}
	}
}

func TestReloadersTemplateIsReadWhereTheWorkloadSaysNothing(t *testing.T) {
	type a = map[string]string
	const (
		auto         = "reloader.stakater.com/auto"
		secretReload = "secret.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		{name: "the template's auto is read where the workload says nothing", pods: a{auto: "true"}, of: "secret/db", ref: reads(), want: byAuto},
		{name: "the template's names are read where the workload says nothing", pods: a{secretReload: "db"}, of: "secret/db", want: byName},
		{name: "the template's names are not read where the workload says auto, whatever it says", on: a{auto: "false"}, pods: a{secretReload: "db"}, of: "secret/db", want: NotWanted},
		{
			name: "what the workload says of one kind leaves the template's of another", on: a{secretReload: "other"},
			pods: a{auto: "true"}, of: "configmap/app", ref: reads(), want: byAuto,
		},
	})
}
