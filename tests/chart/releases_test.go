package chart

import (
	"fmt"
	"testing"
)

// TestReleasesInNamespacesOfTheirOwnShareNoObject has namespaces that are like what the names of objects end with.
func TestReleasesInNamespacesOfTheirOwnShareNoObject(t *testing.T) {
	const (
		all = `secretStores: {enabled: true}, argoRollouts: {enabled: true}, jobs: {enabled: true}, reloadInPlace: {enabled: true},
			secretProviderClasses: {enabled: true}, openbaoAudit: {enabled: true}, otlp: {enabled: true}, verticalPodAutoscaler: {enabled: true},
			reloader: {podMonitor: {enabled: true, namespace: prometheus}}`
		target     = "targets: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.a}], trigger: {annotations: spec.podMetadata.annotations}, status: {owned: true}}]"
		projection = "projector: {enabled: true, projections: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, paths: [spec.a], secrets: [{namespace: %s, name: db, keys: [k]}]}]}"
	)
	for name, values := range map[string]string{
		"one for each selector of namespaces": "{namespaceSelector: keyturn=%s, " + projection + ", " + target + ", " + all + "}",
		"one for each namespace":              "{namespaces: ['%s-apps'], " + projection + ", " + target + ", " + all + "}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			releases := map[string]string{}
			for _, release := range []string{systemNamespace, "tools", "jobs", "secret-stores"} {
				all := objects(t, releasedIn(t, release, fmt.Sprintf(values, release, release)))
				namesWhatIsThere(t, all)
				for object := range all {
					if other, taken := releases[object]; taken {
						t.Errorf("%s is in the releases of %s and %s", object, other, release)
					}
					releases[object] = release
				}
			}
		})
	}
}

// namesWhatIsThere holds that the roles of all bindings and the classes of all pods are among the objects.
func namesWhatIsThere(t *testing.T, all map[string]object) {
	t.Helper()
	for name, one := range all {
		if role := one.at("roleRef", "name"); role != nil {
			namespace := one.at("metadata", "namespace")
			if want := fmt.Sprintf("%s %v/%v", one.at("roleRef", "kind"), namespace, role); all[want] == nil {
				t.Errorf("%s is for %s, which is not there", name, want)
			}
		}
		if class := one.at("spec", "template", "spec", "priorityClassName"); class != nil && all[fmt.Sprintf("PriorityClass <nil>/%v", class)] == nil {
			t.Errorf("the pods of %s have the class %v, which is not there", name, class)
		}
	}
}

func TestAnObjectOutsideOfTheNamespaceOfTheReleaseIsNamedForIt(t *testing.T) {
	for release, names := range map[string][]string{
		systemNamespace: {"ClusterRole <nil>/keyturn-watcher", "ClusterRoleBinding <nil>/keyturn-actuator", "PriorityClass <nil>/keyturn", "PodMonitor p/keyturn-watcher"},
		"tools": {
			"ClusterRole <nil>/keyturn-watcher.tools", "ClusterRoleBinding <nil>/keyturn-actuator.tools", "PriorityClass <nil>/keyturn.tools",
			"PodMonitor p/keyturn-watcher.tools", "PrometheusRule p/keyturn.tools",
		},
	} {
		all := objects(t, releasedIn(t, release, "reloader: {podMonitor: {enabled: true, namespace: p}}"))
		for _, name := range names {
			if all[name] == nil {
				t.Errorf("the release in %s has no %s", release, name)
			}
		}
	}
}
