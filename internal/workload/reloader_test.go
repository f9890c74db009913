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
		classReload  = "secretproviderclass.reloader.stakater.com/reload"
		classExclude = "secretproviderclasses.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
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
	})
}

func TestReloadersAnnotationsOptOutOfRollAll(t *testing.T) {
	type a = map[string]string
	const (
		auto          = "reloader.stakater.com/auto"
		secretAuto    = "secret.reloader.stakater.com/auto"
		secretExclude = "secrets.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
		{name: "auto that is false opts out of roll-all", on: a{auto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
		{name: "auto of one kind that is false opts out of roll-all for it", on: a{secretAuto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
		{name: "auto that is empty does not opt out of roll-all", on: a{auto: ""}, all: true, of: "secret/db", ref: reads(), want: byAll},
		{name: "the template's auto that is false opts out of roll-all", pods: a{auto: "false"}, all: true, of: "secret/db", ref: reads(), want: NotWanted},
	})
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
			annotation: "secret.reloader.stakater.com/reload", value: "db,(,a)|(b",
			want: []string{
				`secret.reloader.stakater.com/reload: item "(": missing closing ): allowed is the name of a secret, or a regular expression for all of it`,
				`secret.reloader.stakater.com/reload: item "a)|(b": unexpected ): allowed is the name of a secret, or a regular expression for all of it`,
			},
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
		})
	}
}
