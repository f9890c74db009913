package chart

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Flux substitutes after kustomize has named the ConfigMap by its content: the name of the ConfigMap stays, and nothing else would restart a pod.
func TestAnotherNameOfFluxReplacesThePods(t *testing.T) {
	for _, test := range []struct{ base, variable string }{
		{"flux/cluster", "cluster_name"}, {"flux/namespaced", "cluster_name"}, {"flux/namespaced", "namespace"},
	} {
		t.Run(test.base+" with another "+test.variable, func(t *testing.T) {
			t.Parallel()
			one, other := substituted(t, test.base, test.variable, "one"), substituted(t, test.base, test.variable, "other")
			for _, name := range []string{"Deployment keyturn-watcher", "Deployment keyturn-audit", "Deployment keyturn-projector", "StatefulSet keyturn-actuator"} {
				name = strings.Replace(name, " ", " "+systemNamespace+"/", 1)
				before, after := one[name].at("spec", "template"), other[name].at("spec", "template")
				if before == nil || cmp.Equal(before, after) {
					t.Errorf("%s: want a pod template that differs, got %v", name, after)
				}
			}
		})
	}
}

// substituted are the objects that Flux makes of a folder of deploy, with the receiver of audits and the projector, and with a value of a variable.
func substituted(t *testing.T, base, variable, value string) map[string]object {
	t.Helper()
	flux := kustomized(t, base)["Kustomization flux-system/keyturn"]
	patches, err := yaml.Marshal(map[string]any{"patches": flux.at("spec", "patches")})
	testkit.Must(t, err)
	dir := overlay(t, string(patches), path.Base(flux.at("spec", "path").(string)), "openbao-audit", "projector", "projections/example")
	out := strings.ReplaceAll(built(t, dir), "${"+variable+"}", value)
	for name, value := range flux.at("spec", "postBuild", "substitute").(map[string]any) {
		out = strings.ReplaceAll(out, "${"+name+"}", value.(string))
	}
	return objects(t, out)
}

// Without a TTL nothing removes a job that has failed, and Flux applies nothing to one that is as it should be.
func TestTheJobOfTheKeysDoesNotGiveUpWithFlux(t *testing.T) {
	job := substituted(t, "flux/cluster", "cluster_name", "one")["Job "+systemNamespace+"/keyturn-keys"]
	if ttl := job.at("spec", "ttlSecondsAfterFinished"); job == nil || ttl != nil {
		t.Errorf("time until the job is removed: got %v, want none", ttl)
	}
	if limit, _ := job.at("spec", "backoffLimit").(float64); limit < 100_000 {
		t.Errorf("restarts of its pod: got %v, want enough for a year, one every five minutes", limit)
	}
}
