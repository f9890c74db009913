package reloader

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestFlagsSayWhichSourcesAndWorkloadsCount(t *testing.T) {
	t.Parallel()
	workloads := []struct {
		name        string
		annotations map[string]string
		change      string
	}{
		{"annotated", auto(), "secret"},
		{"labelled", auto(), "secret"},
		{"settings", auto(), "configmap"},
		{"labelled-settings", auto(), "configmap"},
		{"plain", nil, "secret"},
		{"off", map[string]string{"reloader.stakater.com/auto": "false"}, "secret"},
	}
	for _, tt := range []struct {
		name string
		args []string
		// rolled are the workloads that roll when the sources of all have changed. Of each kind of source that counts there is one.
		rolled []string
	}{
		{"by default", nil, []string{"annotated", "labelled", "settings", "labelled-settings"}},
		{"--auto-reload-all", []string{"--auto-reload-all"}, []string{"annotated", "labelled", "settings", "labelled-settings", "plain"}},
		{"--resource-label-selector", []string{"--resource-label-selector", "team:shop"}, []string{"labelled", "labelled-settings"}},
		{"--resources-to-ignore secrets", []string{"--resources-to-ignore", "secrets"}, []string{"settings", "labelled-settings"}},
		{"--resources-to-ignore configMaps", []string{"--resources-to-ignore", "configMaps"}, []string{"annotated", "labelled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for _, w := range workloads {
				r.sources(w.name, "one", nil)
				r.deploy(w.name, w.annotations, func(template *corev1.PodTemplateSpec) {
					readsSecret(template, w.name)
					readsConfigMap(template, w.name)
				})
			}
			r.label("labelled")
			r.labelConfigMap("labelled-settings")
			r.start(tt.args...)
			first := make(map[string]int64)
			for _, w := range workloads {
				first[w.name] = r.writes(w.name)
			}
			for round, value := range []string{"two", "three", "four"} {
				before := make(map[string]int64)
				for _, w := range workloads {
					before[w.name] = r.writes(w.name)
					// All change at first. The later rolls of those that do roll come after whatever that has brought about.
					if round == 0 || slices.Contains(tt.rolled, w.name) {
						r.change(w.name, w.change, value)
					}
				}
				for _, name := range tt.rolled {
					r.awaitRoll(name, before[name])
				}
			}
			for _, w := range workloads {
				if rolled := r.writes(w.name) > first[w.name]; rolled != slices.Contains(tt.rolled, w.name) {
					t.Errorf("%s was rolled: got %t, want %t", w.name, rolled, !rolled)
				}
			}
		})
	}
}
