package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReloadersAutoAndSearchWantWhatIsReferenced(t *testing.T) {
	type a = map[string]string
	const (
		auto         = "reloader.stakater.com/auto"
		search       = "reloader.stakater.com/search"
		secretAuto   = "secret.reloader.stakater.com/auto"
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
		auto       = "reloader.stakater.com/auto"
		secretAuto = "secret.reloader.stakater.com/auto"
	)
	runWantTests(t, []wantTest{
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
	if diff := cmp.Diff(want, lines(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if optIn.Wants(db, nil, false).Reason != byName || optIn.Wants(app, reads(), false).Wanted() {
		t.Error("the valid item of the list is not wanted, or auto that cannot be read does not opt out of roll-all")
	}
}
