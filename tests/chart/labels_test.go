package chart

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// recommended are the labels that Kubernetes recommends, but for the version, which the kustomizations set.
var recommended = []string{
	"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of",
}

// everything are values that together make every object of the chart.
var everything = []string{
	"{secretStores: {enabled: true}, secretProviderClasses: {enabled: true}, argoRollouts: {enabled: true}, jobs: {enabled: true}, " +
		"reloadInPlace: {enabled: true}, monitoring: {enabled: true}, otlp: {enabled: true}, namespaceSelector: a=b, " +
		"openbaoAudit: {enabled: true}, nats: {certificate: cert-manager, leaf: {hub: tls://a:7422}}, verticalPodAutoscaler: {enabled: true}}",
	"{namespaces: [shop], actuator: {replicas: 3}, storeAccess: {grants: [{namespaces: [shop], store: a, paths: [b]}]}}",
	"{targets: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, trigger: {annotations: spec.a}}], projector: {enabled: true, projections: " +
		"[{apiVersion: example.org/v1, kind: Widget, resource: widgets, paths: [spec.a], secrets: [{namespace: shop, name: db, keys: [a]}]}]}}",
	"{nats: {url: nats://a:4222}, reloader: {service: {port: 9090}, webhookUrl: https://a.example.com}}",
	"{mode: single, nats: {storage: {ephemeral: false}}}",
}

// lacks returns the labels of names that an object lacks, or its pods.
func lacks(o object, names []string) []string {
	var missing []string
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		if o.at(path...) == nil {
			continue
		}
		for _, name := range names {
			if label, _ := o.at(append(path, "labels", name)...).(string); label == "" && name != "helm.sh/chart" || label == "" && len(path) == 1 {
				missing = append(missing, strings.Join(path, ".")+" "+name)
			}
		}
	}
	return missing
}

func TestEveryObjectOfTheChartHasTheRecommendedLabels(t *testing.T) {
	names := append(slices.Clone(recommended), "app.kubernetes.io/version", "helm.sh/chart")
	rendered := map[string]bool{}
	for _, values := range everything {
		out := releasedIn(t, systemNamespace, values)
		for line := range strings.Lines(out) {
			if source, found := strings.CutPrefix(line, "# Source: keyturn/"); found {
				rendered[strings.TrimSpace(source)] = true
			}
		}
		for name, one := range objects(t, out) {
			if missing := lacks(one, names); missing != nil {
				t.Errorf("%s lacks %s", name, strings.Join(missing, ", "))
			}
		}
	}
	templates, err := filepath.Glob(folder + "/templates/*.yaml")
	if err != nil || len(templates) == 0 {
		t.Fatal("there are no templates: ", err)
	}
	for _, file := range templates {
		if name := "templates/" + filepath.Base(file); !rendered[name] {
			t.Errorf("no values make the objects of %s", name)
		}
	}
}

func TestLabelsSayTheReleaseAndItsVersion(t *testing.T) {
	values := "{image: {tag: v0.2.0+rc.1}, commonLabels: {team: x, app.kubernetes.io/managed-by: Argo CD}}"
	for name, one := range rendered(t, values) {
		labels := one.at("metadata", "labels").(map[string]any)
		for label, want := range map[string]string{
			"app.kubernetes.io/version": "v0.2.0rc.1", "app.kubernetes.io/instance": "keyturn", "team": "x", "app.kubernetes.io/managed-by": "Argo CD",
		} {
			if labels[label] != want {
				t.Errorf("%s: %s is %v, want %s", name, label, labels[label], want)
			}
		}
	}
}

// What selects pods, and the template of a claim, are immutable: with another label in them no installation of before could be upgraded.
func TestNoLabelIsAddedToWhatIsImmutable(t *testing.T) {
	for _, values := range append(slices.Clone(everything), "commonLabels: {team: x}") {
		for name, one := range rendered(t, values) {
			if selector := one.at("spec", "selector", "matchLabels"); selector != nil && !strings.HasPrefix(name, "PodMonitor ") {
				_, program, _ := strings.Cut(name, "/")
				if diff := cmp.Diff(map[string]any{"app.kubernetes.io/name": program}, selector); diff != "" {
					t.Errorf("%s selects (-want +got):\n%s", name, diff)
				}
			}
			claims, _ := one.at("spec", "volumeClaimTemplates").([]any)
			for _, claim := range claims {
				if diff := cmp.Diff(map[string]any{"name": "data"}, claim.(map[string]any)["metadata"]); diff != "" {
					t.Errorf("%s claims (-want +got):\n%s", name, diff)
				}
			}
		}
	}
}

// Every file counts, whatever kustomization has it. Those of kustomizations have the labels of what they generate.
func TestEveryManifestHasTheRecommendedLabels(t *testing.T) {
	found := 0
	err := fs.WalkDir(os.DirFS("../../deploy"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path == "chart" {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile("../../deploy/" + path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			var o object
			if yaml.Unmarshal(document, &o) != nil || o["kind"] == nil {
				continue // A patch, or a file of settings.
			}
			found++
			switch o["apiVersion"] {
			case "builtin":
			case "kustomize.config.k8s.io/v1beta1", "kustomize.config.k8s.io/v1alpha1":
				generated, _ := o["configMapGenerator"].([]any)
				for _, one := range generated {
					if one := object(one.(map[string]any)); one["behavior"] != "merge" {
						for _, label := range recommended {
							if one.at("options", "labels", label) == nil {
								t.Errorf("%s: the ConfigMap %s lacks %s", path, one["name"], label)
							}
						}
					}
				}
			default:
				if missing := lacks(o, recommended); missing != nil {
					t.Errorf("%s: %s %v lacks %s", path, o["kind"], o.at("metadata", "name"), strings.Join(missing, ", "))
				}
			}
		}
		return nil
	})
	if err != nil || found < 100 {
		t.Error(fmt.Sprintf("%d objects: ", found), err)
	}
}
