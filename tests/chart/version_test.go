package chart

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Pods and what selects them have no version: with another one alone no pod is replaced.
func TestWhatKustomizeMakesNamesTheVersionOutsideOfPods(t *testing.T) {
	const label = "app.kubernetes.io/version"
	want := testkit.Version(t, "../..")
	for _, base := range []string{"base", "namespaced", "single", "monitoring", "flux/cluster", "flux/namespaced", "flux/monitoring", "flux/alerts"} {
		for name, one := range kustomized(t, base) {
			if got := one.at("metadata", "labels", label); got != want {
				t.Errorf("%s: the version of %s is %v, want %s", base, name, got, want)
			}
			for _, path := range [][]string{{"spec", "template", "metadata", "labels"}, {"spec", "selector"}, {"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}} {
				if got := one.at(append(path, label)...); got != nil {
					t.Errorf("%s: %s has the version in %v", base, name, path)
				}
			}
			claims, _ := one.at("spec", "volumeClaimTemplates").([]any)
			for _, claim := range claims {
				if got := object(claim.(map[string]any)).at("metadata", "labels"); got != nil {
					t.Errorf("%s: a claim of %s has the labels %v", base, name, got)
				}
			}
		}
	}
	for name, one := range kustomized(t, "flux/cluster", "flux/oci") {
		if got := one.at("metadata", "labels", label); got != want {
			t.Errorf("flux/oci: the version of %s is %v, want %s", name, got, want)
		}
	}
}
