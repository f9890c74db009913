package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReloader(t *testing.T) {
	type a = map[string]string
	const (
		auto             = "reloader.stakater.com/auto"
		search           = "reloader.stakater.com/search"
		secretAuto       = "secret.reloader.stakater.com/auto"
		secretReload     = "secret.reloader.stakater.com/reload"
		secretExclude    = "secrets.exclude.reloader.stakater.com/reload"
		configMapAuto    = "configmap.reloader.stakater.com/auto"
		configMapReload  = "configmap.reloader.stakater.com/reload"
		configMapExclude = "configmaps.exclude.reloader.stakater.com/reload"
	)
	tests := []wantTest{
		{
			name:     "auto wants what is referenced, of every kind: secrets",
			workload: a{auto: "true"}, source: "secret/db", ref: reads("user"),
			want: byAuto, keys: []string{"user"}, by: auto + ": true",
		},
		{
			name:     "and ConfigMaps",
			workload: a{auto: "true"}, source: "configmap/app", ref: reads(),
			want: byAuto,
		},
		{
			name:     "auto does not want what is not referenced",
			workload: a{auto: "true"}, source: "secret/db",
			want: NotWanted,
		},
		{
			name:     "auto does not want what is only used to pull",
			workload: a{auto: "true"}, source: "secret/registry", ref: pulls(),
			want: OnlyPulled,
		},
		{
			name:     "auto of one kind wants that kind",
			workload: a{secretAuto: "true"}, source: "secret/db", ref: reads(),
			want: byAuto, by: secretAuto + ": true",
		},
		{
			name:     "auto of one kind does not want another",
			workload: a{secretAuto: "true"}, source: "configmap/app", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "auto of ConfigMaps wants ConfigMaps",
			workload: a{configMapAuto: "true"}, source: "configmap/app", ref: reads(),
			want: byAuto, by: configMapAuto + ": true",
		},
		{
			name:     "auto of ConfigMaps does not want Secrets",
			workload: a{configMapAuto: "true"}, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "auto of one kind counts where auto is false",
			workload: a{auto: "false", secretAuto: "true"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "auto counts where auto of the kind is false",
			workload: a{auto: "true", secretAuto: "false"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "a name wants the source without a reference",
			workload: a{secretReload: "db"}, source: "secret/db",
			want: byName, by: secretReload + ": db",
		},
		{
			name:     "a name wants the keys that are read, where there is a reference",
			workload: a{secretReload: "db"}, source: "secret/db", ref: reads("user"),
			want: byName, keys: []string{"user"},
		},
		{
			name:     "a name is of one kind",
			workload: a{secretReload: "db"}, source: "configmap/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "a name of a ConfigMap wants the ConfigMap",
			workload: a{configMapReload: "app"}, source: "configmap/app",
			want: byName, by: configMapReload + ": app",
		},
		{
			name:     "names are a list whose items are trimmed",
			workload: a{secretReload: "a , \n db ,,"}, source: "secret/db",
			want: byName, by: secretReload + ": db",
		},
		{
			name:     "a name is an expression",
			workload: a{secretReload: "db-.*"}, source: "secret/db-main",
			want: byName, by: secretReload + ": db-.*",
		},
		{
			name:     "an expression is for the whole name: not its end",
			workload: a{secretReload: "db-.*"}, source: "secret/my-db-main",
			want: NotWanted,
		},
		{
			name:     "and not its beginning",
			workload: a{secretReload: "db"}, source: "secret/db-main",
			want: NotWanted,
		},
		{
			name:     "a dot in a name is any character, as it is for Reloader",
			workload: a{secretReload: "a.b"}, source: "secret/a-b",
			want: byName,
		},
		{
			name:     "an escaped dot is a dot",
			workload: a{secretReload: `a\.b`}, source: "secret/a-b",
			want: NotWanted,
		},
		{
			name:     "an escaped dot matches a dot",
			workload: a{secretReload: `a\.b`}, source: "secret/a.b",
			want: byName,
		},
		{
			name:     "each alternative is for the whole name: the first",
			workload: a{secretReload: "foo|bar"}, source: "secret/foo",
			want: byName,
		},
		{
			name:     "the second",
			workload: a{secretReload: "foo|bar"}, source: "secret/bar",
			want: byName,
		},
		{
			name:     "unlike Reloader, which takes the first as a beginning",
			workload: a{secretReload: "foo|bar"}, source: "secret/foobaz",
			want: NotWanted,
		},
		{
			name:     "and the second as an end",
			workload: a{secretReload: "foo|bar"}, source: "secret/bazbar",
			want: NotWanted,
		},
		{
			name:     "anchors that somebody wrote do no harm",
			workload: a{secretReload: "^db$"}, source: "secret/db",
			want: byName,
		},
		{
			name:     "an expression may ignore the case",
			workload: a{secretReload: "(?i)DB"}, source: "secret/db",
			want: byName,
		},
		{
			name:     "an exclusion beats auto",
			workload: a{auto: "true", secretExclude: "noisy, db"}, source: "secret/db", ref: reads(),
			want: Excluded, by: secretExclude + ": db",
		},
		{
			name:     "an exclusion beats names",
			workload: a{secretReload: "db", secretExclude: "db"}, source: "secret/db", ref: reads(),
			want: Excluded,
		},
		{
			name:     "an exclusion beats search",
			workload: a{search: "true", configMapExclude: "app"}, source: "configmap/app", ref: reads(), match: true,
			want: Excluded, by: configMapExclude + ": app",
		},
		{
			name:     "an exclusion is of one kind",
			workload: a{auto: "true", secretExclude: "db"}, source: "configmap/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "an exclusion is an exact name, and no expression",
			workload: a{auto: "true", secretExclude: "a.b"}, source: "secret/a-b", ref: reads(),
			want: byAuto,
		},
		{
			name:     "an exclusion of the template is not read",
			workload: a{auto: "true"}, template: a{secretExclude: "db"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "nor where auto is of the template",
			template: a{auto: "true", secretExclude: "db"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "an exclusion of the workload counts where auto is of the template",
			workload: a{secretExclude: "db"}, template: a{auto: "true"}, source: "secret/db", ref: reads(),
			want: Excluded,
		},
		{
			name:     "search wants what is referenced and matches",
			workload: a{search: "true"}, source: "secret/db", ref: reads("user"), match: true,
			want: bySearch, keys: []string{"user"}, by: search + ": true",
		},
		{
			name:     "search does not want what does not match",
			workload: a{search: "true"}, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "search does not want what is not referenced",
			workload: a{search: "true"}, source: "secret/db", match: true,
			want: NotWanted,
		},
		{
			name:     "search does not want what is only used to pull",
			workload: a{search: "true"}, source: "secret/registry", ref: pulls(), match: true,
			want: OnlyPulled,
		},
		{
			name:     "search must be the word true",
			workload: a{search: "True"}, source: "secret/db", ref: reads(), match: true,
			want: NotWanted,
		},
		{
			name:     "match alone is nothing",
			workload: a{auto: "false"}, source: "secret/db", ref: reads(), match: true,
			want: NotWanted,
		},
		{
			name:     "auto that is false does not stop names",
			workload: a{auto: "false", secretReload: "db"}, source: "secret/db",
			want: byName,
		},
		{
			name:     "auto that is false does not stop search",
			workload: a{auto: "false", search: "true"}, source: "secret/db", ref: reads(), match: true,
			want: bySearch,
		},
		{
			name:     "auto that is false opts out of roll-all",
			workload: a{auto: "false"}, all: true, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "auto of one kind that is false opts out of roll-all for it",
			workload: a{secretAuto: "false"}, all: true, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "and not for another",
			workload: a{secretAuto: "false"}, all: true, source: "configmap/app", ref: reads(),
			want: byAll,
		},
		{
			name:     "auto that is empty does not opt out of roll-all",
			workload: a{auto: ""}, all: true, source: "secret/db", ref: reads(),
			want: byAll,
		},
		{
			name:     "names do not opt out of roll-all",
			workload: a{secretReload: "db"}, all: true, source: "secret/other", ref: reads(),
			want: byAll,
		},
		{
			name:     "the template's auto that is false opts out of roll-all",
			template: a{auto: "false"}, all: true, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "an exclusion beats roll-all",
			workload: a{secretExclude: "db"}, all: true, source: "secret/db", ref: reads(),
			want: Excluded,
		},
		{
			name:     "the template's auto is read where the workload says nothing",
			template: a{auto: "true"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "the template's names are read where the workload says nothing",
			template: a{secretReload: "db"}, source: "secret/db",
			want: byName,
		},
		{
			name:     "the template's search is read where the workload says nothing",
			template: a{search: "true"}, source: "secret/db", ref: reads(), match: true,
			want: bySearch,
		},
		{
			name:     "the template's auto of one kind is read where the workload says nothing",
			template: a{secretAuto: "true"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "the template's names are not read where the workload says auto, whatever it says",
			workload: a{auto: "false"}, template: a{secretReload: "db"}, source: "secret/db",
			want: NotWanted,
		},
		{
			name:     "nor where it searches",
			workload: a{search: ""}, template: a{secretReload: "db"}, source: "secret/db",
			want: NotWanted,
		},
		{
			name:     "nor where it names",
			workload: a{secretReload: "other"}, template: a{secretReload: "db", auto: "true"}, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "nor where it says auto of the kind",
			workload: a{secretAuto: "false"}, template: a{auto: "true"}, source: "secret/db", ref: reads(),
			want: NotWanted,
		},
		{
			name:     "what the workload says of one kind leaves the template's of another",
			workload: a{secretReload: "other"}, template: a{auto: "true"}, source: "configmap/app", ref: reads(),
			want: byAuto,
		},
		{
			name:     "an exclusion of the workload leaves the template's",
			workload: a{secretExclude: "other"}, template: a{auto: "true"}, source: "secret/db", ref: reads(),
			want: byAuto,
		},
		{
			name:     "keys of SecretProviderClasses are passed over",
			workload: a{"secretproviderclass.reloader.stakater.com/auto": "true", "secretproviderclass.reloader.stakater.com/reload": "("},
			source:   "secret/db", ref: reads(),
			want: NotWanted,
		},
	}
	for _, yes := range []string{"1", "t", "T", "TRUE", "true", "True"} {
		tests = append(tests, wantTest{
			name:     "auto is on as " + yes,
			workload: a{auto: yes}, source: "secret/db", ref: reads(),
			want: byAuto,
		})
	}
	for _, no := range []string{"0", "f", "F", "FALSE", "false", "False"} {
		tests = append(tests, wantTest{
			name:     "auto is off as " + no,
			workload: a{auto: no}, all: true, source: "secret/db", ref: reads(),
			want: NotWanted,
		})
	}
	runWantTests(t, tests)
}

func TestReloaderErrors(t *testing.T) {
	tests := []struct {
		name       string
		annotation string
		value      string
		want       []string
	}{
		{
			name:       "auto that is neither true nor false is said once",
			annotation: "reloader.stakater.com/auto", value: "yes",
			want: []string{`reloader.stakater.com/auto: item "yes": read as "false": allowed are "true" and "false"`},
		},
		{
			name:       "so is auto of one kind",
			annotation: "secret.reloader.stakater.com/auto", value: "on",
			want: []string{`secret.reloader.stakater.com/auto: item "on": read as "false": allowed are "true" and "false"`},
		},
		{
			name:       "each expression that is none is said",
			annotation: "secret.reloader.stakater.com/reload", value: "db,(,*,a)|(b",
			want: []string{
				`secret.reloader.stakater.com/reload: item "(": missing closing ): allowed is the name of a secret, or a regular expression for all of it`,
				`secret.reloader.stakater.com/reload: item "*": missing argument to repetition operator: allowed is the name of a secret, or a regular expression for all of it`,
				`secret.reloader.stakater.com/reload: item "a)|(b": unexpected ): allowed is the name of a secret, or a regular expression for all of it`,
			},
		},
		{
			name:       "an expression that cannot be put in parentheses is said",
			annotation: "secret.reloader.stakater.com/reload", value: `db,x*\Qa`,
			want: []string{`secret.reloader.stakater.com/reload: item "x*\\Qa": missing closing ): allowed is the name of a secret, or a regular expression for all of it`},
		},
		{
			name:       "an expression that is small on paper and large in memory is said",
			annotation: "secret.reloader.stakater.com/reload", value: "(?:abcdefghijklmnopqrstuvwxyz|b){1000}, db",
			want: []string{`secret.reloader.stakater.com/reload: item "(?:abcdefghijklmnopqrstuvwxyz|b){1000}": the expressions have more than 16384 steps in all: allowed is the name of a secret, or a regular expression for all of it`},
		},
		{
			name:       "an exclusion that is no name is said",
			annotation: "configmaps.exclude.reloader.stakater.com/reload", value: "app-.*,noisy",
			want: []string{`configmaps.exclude.reloader.stakater.com/reload: item "app-.*": allowed is the exact name of a configmap`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			workload := map[string]string{AnnotationRollOn: "secret/other", tt.annotation: tt.value}
			optIn, errs := parseOptIn(workload, nil, true)
			if diff := cmp.Diff(tt.want, lines(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if strings.Contains(tt.value, "db") && optIn.Wants(source(t, "secret/db"), nil, false).Reason != byName {
				t.Error("the valid item of the list is not wanted")
			}
			if strings.Contains(tt.value, "noisy") && optIn.Wants(source(t, "configmap/noisy"), nil, false).Reason != Excluded {
				t.Error("the valid exclusion of the list does not exclude")
			}
			if got := optIn.Wants(source(t, "secret/other"), nil, false).Reason; got != byName {
				t.Errorf("the other annotation says %s", got)
			}
		})
	}
}

func TestReloaderAutoThatCannotBeReadOptsOutOfAll(t *testing.T) {
	optIn, _ := parseOptIn(map[string]string{"reloader.stakater.com/auto": "no"}, nil, true)
	if !optIn.Empty() {
		t.Error("roll-all counted")
	}
}

// TestReloaderBoundsAllExpressions has many expressions each of which is allowed.
func TestReloaderBoundsAllExpressions(t *testing.T) {
	annotation := "secret.reloader.stakater.com/reload"
	optIn, errs := parseOptIn(map[string]string{annotation: strings.Repeat(`x{999},`, 100) + "db"}, nil, false)
	if len(errs) != 92 {
		t.Errorf("%d errors, want 92 for those of 100 that do not fit", len(errs))
	}
	if got := optIn.Wants(source(t, "secret/db"), nil, false).Reason; got != byName {
		t.Errorf("the valid item is %s", got)
	}
}

func TestReloaderReadsAnAnnotationFullOfNames(t *testing.T) {
	names := strings.Repeat("my.config-1,", maxAnnotation/len("my.config-1,"))
	if _, errs := parseOptIn(map[string]string{"secret.reloader.stakater.com/reload": names}, nil, false); len(errs) > 0 {
		t.Errorf("%d errors, the first %v", len(errs), errs[0])
	}
}
