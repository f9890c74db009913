package workload

import "testing"

func TestReloadersTemplateIsReadWhereTheWorkloadSaysNothing(t *testing.T) {
	type a = map[string]string
	const (
		auto          = "reloader.stakater.com/auto"
		search        = "reloader.stakater.com/search"
		secretAuto    = "secret.reloader.stakater.com/auto"
		secretReload  = "secret.reloader.stakater.com/reload"
		secretExclude = "secrets.exclude.reloader.stakater.com/reload"
	)
	runWantTests(t, []wantTest{
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
	})
}
