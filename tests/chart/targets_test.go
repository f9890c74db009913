package chart

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// recipes are the folders of deploy/targets with a file of targets.
func recipes(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../../deploy/targets")
	testkit.Must(t, err)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "policy" {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no recipes")
	}
	return names
}

func TestEachRecipeGrantsAndConfinesWhatItLists(t *testing.T) {
	for _, recipe := range recipes(t) {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("../../deploy/targets", recipe, recipe+".yaml")
			kinds, err := workload.ReadTargets(file)
			testkit.Must(t, err)
			content := testkit.ReadFile(t, file)
			byKustomize := kustomized(t, "base", "targets", "targets/"+recipe)
			byChart := rendered(t, content)
			targetsAre(t, byKustomize, kinds)
			targetsAre(t, byChart, kinds)
			var rights []string
			for _, k := range kinds {
				for _, verb := range []string{"list", "watch", "patch"} {
					rights = append(rights, verb+" "+k.Resource)
				}
			}
			slices.Sort(rights)
			for role, all := range map[string]map[string]object{
				"keyturn-actuator-target-" + recipe: byKustomize, "keyturn-actuator-targets": byChart,
			} {
				if diff := cmp.Diff(rights, all["ClusterRole <nil>/"+role]["rules"]); diff != "" {
					t.Errorf("the rights of %s (-want +got):\n%s", role, diff)
				}
			}
			want, got := confinements(t, byKustomize), confinements(t, byChart)
			if diff := cmp.Diff(want, got); diff != "" || len(want) != len(kinds) {
				t.Errorf("the policies of %d kinds (-kustomize +chart):\n%s", len(kinds), diff)
			}
		})
	}
}

// targetsAre holds that the actuator reads kinds from the folder that it mounts.
func targetsAre(t *testing.T, all map[string]object, want workload.Kinds) {
	t.Helper()
	folder, _ := all["ConfigMap "+systemNamespace+"/keyturn"].at("data", "KEYTURN_TARGETS_CONFIG").(string)
	pod := fmt.Sprint(all[programs["actuator"]].at("spec", "template", "spec"))
	if mount := "mountPath:" + folder + " "; folder == "" || !strings.Contains(pod, mount) || !strings.Contains(pod, "name:keyturn-targets") {
		t.Errorf("%q is not mounted", folder)
	}
	dir := t.TempDir()
	files, _ := all["ConfigMap "+systemNamespace+"/keyturn-targets"].at("data").(map[string]any)
	for name, content := range files {
		testkit.WriteFile(t, filepath.Join(dir, path.Base(name)), fmt.Sprint(content))
	}
	got, err := workload.ReadTargets(dir)
	if err != nil || !slices.Equal(got.Names(), want.Names()) {
		t.Errorf("kinds: got %v, %v, want %v", got.Names(), err, want.Names())
	}
}

// confinements are the policies of targets: for each resource the expressions, but for the kinds of Events, which kustomize has together.
func confinements(t *testing.T, all map[string]object) map[string]any {
	t.Helper()
	confined := map[string]any{}
	for name, o := range all {
		if !strings.HasPrefix(name, "ValidatingAdmissionPolicy ") || o.at("metadata", "labels", "keyturn.dev/target") == nil {
			continue
		}
		binding := all["ValidatingAdmissionPolicyBinding"+strings.TrimPrefix(name, "ValidatingAdmissionPolicy")]
		if binding.at("spec", "policyName") != o.at("metadata", "name") {
			t.Errorf("%s is not bound", name)
		}
		rules, _ := o.at("spec", "matchConstraints", "resourceRules").([]any)
		for _, rule := range rules {
			rule := object(rule.(map[string]any))
			conditions, _ := o.at("spec", "matchConditions").([]any)
			for _, resource := range rule["resources"].([]any) {
				key := fmt.Sprintf("%v of %v", resource, rule["apiGroups"])
				if resource == "events" {
					continue
				}
				confined[key] = []any{conditions[0], rule["operations"], o.at("spec", "variables"), o.at("spec", "validations")}
			}
		}
	}
	return confined
}

func TestEventsAboutATargetAreUpToItsOwnPolicy(t *testing.T) {
	for _, recipe := range recipes(t) {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			content := testkit.ReadFile(t, filepath.Join("../../deploy/targets", recipe, recipe+".yaml"))
			for name, all := range map[string]map[string]object{
				"kustomize": kustomized(t, "base", "targets", "targets/"+recipe), "the chart": rendered(t, content),
			} {
				given, taken := map[string]bool{}, map[string]bool{}
				for _, o := range all {
					conditions, _ := o.at("spec", "matchConditions").([]any)
					for _, condition := range conditions {
						text := strings.Join(strings.Fields(fmt.Sprint(object(condition.(map[string]any))["expression"])), " ")
						if about, ok := strings.CutPrefix(text, "request.resource.resource != 'events' || ("); ok {
							taken[strings.TrimSuffix(about, ")")] = true
						} else if about, ok := strings.CutPrefix(text, "request.resource.resource != 'events' || !("); ok {
							given[strings.TrimSuffix(about, ")")] = true
						}
					}
				}
				if len(given) == 0 || !maps.Equal(given, taken) {
					t.Errorf("%s: the policy of deploy/admission leaves out %v, and those of the targets have %v", name, given, taken)
				}
			}
		})
	}
}

func TestWithoutAdmissionPolicyThereIsNoneOfATarget(t *testing.T) {
	content := testkit.ReadFile(t, "../../deploy/targets/prometheus-operator/prometheus-operator.yaml")
	for name, all := range map[string]map[string]object{
		"kustomize": kustomized(t, "base", "targets", "targets/prometheus-operator", "without-admission-policy"),
		"the chart": rendered(t, content+"\nadmissionPolicy: {enabled: false}\n"),
	} {
		for object := range all {
			if strings.HasPrefix(object, "ValidatingAdmission") {
				t.Errorf("%s: there is %s", name, object)
			}
		}
	}
}

func TestATriggerThatTheChartCannotConfineIsRefused(t *testing.T) {
	const form = "targets: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, template: spec.template, trigger: {%s}}]"
	for _, trigger := range []string{"annotations: metadata.annotations", "annotations: \"spec['a']\"", "field: status.phase", "field: \"metadata.annotations['a'b']\""} {
		refuses(t, fmt.Sprintf(form, trigger), "/targets/0/trigger")
	}
	for trigger, want := range map[string][]string{
		"annotations: spec.a.b": {
			"['spec', 'a', 'b']", "['keyturn.dev/revision', 'keyturn.dev/cause', 'keyturn.dev/traceparent']", "[]",
		},
		"field: spec.task, value: revision": {
			"['spec']", "['task']", "['keyturn.dev/revision', 'keyturn.dev/cause', 'keyturn.dev/traceparent']",
		},
		"field: \"metadata.annotations['example.org/at']\", value: time": {
			"[]", "[]", "['keyturn.dev/revision', 'keyturn.dev/cause', 'keyturn.dev/traceparent', " +
				"'keyturn.dev/triggered-at', 'example.org/at']",
		},
	} {
		variables, _ := rendered(t, fmt.Sprintf(form, trigger))["ValidatingAdmissionPolicy <nil>/keyturn-system-target-widget"].at("spec", "variables").([]any)
		for i, want := range want {
			if got := object(variables[i].(map[string]any))["expression"]; got != want {
				t.Errorf("%s: variable %d: got %v, want %s", trigger, i, got, want)
			}
		}
	}
}
