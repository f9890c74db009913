package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReloadersAutoAndSearchWantWhatIsReferenced(t *testing.T) {
	type a = map[string]string
	const (
		auto         = "reloader.stakater.com/auto"
		search       = "reloader.stakater.com/search"
		secretAuto   = "secret.reloader.stakater.com/auto"
		secretReload = "secret.reloader.stakater.com/reload"
		classAuto    = "secretproviderclass.reloader.stakater.com/auto"
	)
	tests := []wantTest{
		{
			name: "auto wants what is referenced, of every kind: secrets", workload: a{auto: "true"}, source: "secret/db",
			ref: reads("user"), want: byAuto, keys: []string{"user"}, by: auto + ": true",
		},
		{name: "auto does not want what is not referenced", workload: a{auto: "true"}, source: "secret/db", want: NotWanted},
		{name: "auto does not want what is only used to pull", workload: a{auto: "true"}, source: "secret/registry", ref: pulls(), want: OnlyPulled},
		{
			name: "auto of one kind wants that kind", workload: a{secretAuto: "true"}, source: "secret/db", ref: reads(), want: byAuto,
			by: secretAuto + ": true",
		},
		{name: "auto of one kind does not want another", workload: a{secretAuto: "true"}, source: "configmap/app", ref: reads(), want: NotWanted},
		{
			name: "auto of one kind counts where auto is false", workload: a{auto: "false", secretAuto: "true"}, source: "secret/db",
			ref: reads(), want: byAuto,
		},
		{
			name: "search wants what is referenced and matches", workload: a{search: "true"}, source: "secret/db", ref: reads("user"),
			match: true, want: bySearch, keys: []string{"user"}, by: search + ": true",
		},
		{name: "search does not want what does not match", workload: a{search: "true"}, source: "secret/db", ref: reads(), want: NotWanted},
		{name: "search does not want what is not referenced", workload: a{search: "true"}, source: "secret/db", match: true, want: NotWanted},
		{name: "search must be the word true", workload: a{search: "True"}, source: "secret/db", ref: reads(), match: true, want: NotWanted},
		{name: "auto that is false does not stop names", workload: a{auto: "false", secretReload: "db"}, source: "secret/db", want: byName},
		{
			name: "auto wants SecretProviderClasses", workload: a{auto: "true"}, source: "secretproviderclass/db", ref: reads(),
			want: byAuto, by: auto + ": true",
		},
		{
			name:     "a SecretProviderClass is wanted by its name",
			workload: a{"secretproviderclass.reloader.stakater.com/reload": "web,d."}, source: "secretproviderclass/db", want: byName,
		},
		{
			name:     "a SecretProviderClass is excluded by its name",
			workload: a{auto: "true", "secretproviderclasses.exclude.reloader.stakater.com/reload": "db"}, source: "secretproviderclass/db", ref: reads(),
			want: Excluded,
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

func TestReloadersAnnotationsOptOutOfRollAll(t *testing.T) {
	type a = map[string]string
	const (
		auto          = "reloader.stakater.com/auto"
		secretAuto    = "secret.reloader.stakater.com/auto"
		secretReload  = "secret.reloader.stakater.com/reload"
		secretExclude = "secrets.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		{name: "auto that is false opts out of roll-all", workload: a{auto: "false"}, all: true, source: "secret/db", ref: reads(), want: NotWanted},
		{
			name: "auto of one kind that is false opts out of roll-all for it", workload: a{secretAuto: "false"}, all: true,
			source: "secret/db", ref: reads(), want: NotWanted,
		},
		{name: "and not for another", workload: a{secretAuto: "false"}, all: true, source: "configmap/app", ref: reads(), want: byAll},
		{name: "auto that is empty does not opt out of roll-all", workload: a{auto: ""}, all: true, source: "secret/db", ref: reads(), want: byAll},
		{
			name: "the template's auto that is false opts out of roll-all", template: a{auto: "false"}, all: true, source: "secret/db",
			ref: reads(), want: NotWanted,
		},
		{name: "an exclusion beats roll-all", workload: a{secretExclude: "db"}, all: true, source: "secret/db", ref: reads(), want: Excluded},
	})
}

func TestReloaderAutoThatCannotBeReadOptsOutOfAll(t *testing.T) {
	optIn, _ := parseOptIn(map[string]string{"reloader.stakater.com/auto": "no"}, nil, Reading{All: true})
	if !optIn.Empty() {
		t.Error("roll-all counted")
	}
}

func TestReloaderErrors(t *testing.T) {
	tests := []struct {
		name, annotation, value string
		want                    []string
	}{
		{
			name: "auto that is neither true nor false is said once", annotation: "reloader.stakater.com/auto", value: "yes",
			want: []string{`reloader.stakater.com/auto: item "yes": read as "false": allowed are "true" and "false"`},
		},
		{
			name:       "each item that is neither a name nor an expression is said",
			annotation: "secret.reloader.stakater.com/reload", value: "db,(,*,db cache,a)|(b",
			want: []string{
				`secret.reloader.stakater.com/reload: item "(": missing closing ): allowed is the name of a secret, or a regular expression for all of it`,
				`secret.reloader.stakater.com/reload: item "*": missing argument to repetition operator: allowed is the name of a secret, or a regular expression for all of it`,
				`secret.reloader.stakater.com/reload: item "db cache": no object can have this name: allowed is the name of a secret, or a regular expression for all of it`,
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
			want: []string{`secret.reloader.stakater.com/reload: item "(?:abcdefghijklmnopqrstuvwxyz|b){1000}": the expressions have more than 480 steps in all, with repetitions written out: shorten them, or write names, which do not count, or a pattern such as secret/app-* in keyturn.dev/roll-on`},
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
			optIn, errs := parseOptIn(workload, nil, Reading{All: true})
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
