package chart

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// programs are the objects whose pods are the two programs.
var programs = map[string]string{
	"watcher":  "Deployment keyturn-system/keyturn-watcher",
	"actuator": "StatefulSet keyturn-system/keyturn-actuator",
}

// podValues are the values of a program's pods below a path, each with the value of Reloader's chart that both programs get, and with what
// it must add to the object.
var podValues = []struct{ name, values, reloader, path, want string }{
	{"its labels", "labels: {team: x}", "deployment: {labels: {team: x}}", "metadata labels team", "x"},
	{"its annotations", "annotations: {team: x}", "deployment: {annotations: {team: x}}", "metadata annotations team", "x"},
	{"labels of the pods", "podLabels: {team: x}", "deployment: {labels: {team: x}}", "spec template metadata labels team", "x"},
	{"labels that select Reloader's pods", "podLabels: {team: x}", "matchLabels: {team: x}", "spec template metadata labels team", "x"},
	{
		"annotations of the pods", "podAnnotations: {team: x}", "deployment: {pod: {annotations: {team: x}}}",
		"spec template metadata annotations team", "x",
	},
	{"nodes", "nodeSelector: {disk: ssd}", "deployment: {nodeSelector: {disk: ssd}}", "spec template spec nodeSelector disk", "ssd"},
	{
		"affinity", "affinity: {podAffinity: {}}", "deployment: {affinity: {podAffinity: {}}}",
		"spec template spec affinity", "podAffinity: {}",
	},
	{"tolerations", "tolerations: [{key: a}]", "deployment: {tolerations: [{key: a}]}", "spec template spec tolerations", "- key: a"},
	{
		"spreading, of its own pods whatever Reloader's are called", "topologySpreadConstraints: [{topologyKey: zone}]",
		"deployment: {topologySpreadConstraints: [{topologyKey: zone, labelSelector: {matchLabels: {app: reloader}}}]}",
		"spec template spec topologySpreadConstraints",
		"- labelSelector:\n    matchLabels:\n      app.kubernetes.io/name: keyturn-PROGRAM\n  topologyKey: zone",
	},
	{"priority", "priorityClassName: high", "deployment: {priorityClassName: high}", "spec template spec priorityClassName", "high"},
	{"a runtime", "runtimeClassName: gvisor", "deployment: {runtimeClassName: gvisor}", "spec template spec runtimeClassName", "gvisor"},
	{"a scheduler", "schedulerName: mine", "deployment: {schedulerName: mine}", "spec template spec schedulerName", "mine"},
	{"DNS", "dnsConfig: {searches: [a]}", "deployment: {dnsConfig: {searches: [a]}}", "spec template spec dnsConfig", "searches:\n- a"},
	{"a user namespace", "hostUsers: false", "deployment: {hostUsers: false}", "spec template spec hostUsers", "false"},
	{
		"volumes", "volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /v}]",
		"deployment: {volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /v}]}", "spec template spec volumes", "- name: v",
	},
}

func TestThePodsOfAProgramHaveItsValues(t *testing.T) {
	for _, test := range podValues {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			both := rendered(t, "reloader: {"+test.reloader+"}")
			for program, other := range map[string]string{"watcher": "actuator", "actuator": "watcher"} {
				all := rendered(t, program+": {"+test.values+"}")
				has(t, all, program, test.path, test.want)
				same(t, map[string]object{"other": rendered(t, "{}")[programs[other]]}, map[string]object{"other": all[programs[other]]})
				has(t, both, program, test.path, test.want)
			}
		})
	}
}

// has expects the value at a path of a program's object to contain lines of YAML. PROGRAM in them is the program.
func has(t *testing.T, all map[string]object, program, path, want string) {
	t.Helper()
	got, err := yaml.Marshal(all[programs[program]].at(strings.Fields(path)...))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(want, "PROGRAM", program) + "\n"; !strings.Contains(string(got), want) {
		t.Errorf("%s of the %s: got\n%swant\n%s", path, program, got, want)
	}
}

func TestWhatSelectsThePodsCannotBeChanged(t *testing.T) {
	all := rendered(t, "{watcher: {podLabels: {app.kubernetes.io/name: x}}, reloader: {matchLabels: {app.kubernetes.io/part-of: x}}}")
	for program, object := range programs {
		for name, want := range map[string]string{"app.kubernetes.io/name": "keyturn-" + program, "app.kubernetes.io/part-of": "keyturn"} {
			if got := all[object].at("spec", "template", "metadata", "labels", name); got != want {
				t.Errorf("%s of the %s: got %v, want %s", name, program, got, want)
			}
		}
	}
}

func TestLabelsOfReloadersVersionAreNotTaken(t *testing.T) {
	all := rendered(t, "reloader: {deployment: {labels: {provider: stakater, group: com.stakater.platform, version: v1.4.21, team: x}}}")
	for program, object := range programs {
		if got := fmt.Sprint(all[object].at("metadata", "labels")); strings.Contains(got, "v1.4.21") || !strings.Contains(got, "team:x") {
			t.Errorf("labels of the %s: got %s", program, got)
		}
	}
}

func TestThePriorityClassIsThereIfAPodHasIt(t *testing.T) {
	for values, want := range map[string]bool{
		"{}":                                 true,
		"watcher: {priorityClassName: high}": true,
		"namespaces: [team-a]":               false,
		"{watcher: {priorityClassName: high}, actuator: {priorityClassName: high}}": false,
	} {
		if got := rendered(t, values)["PriorityClass <nil>/keyturn"] != nil; got != want {
			t.Errorf("with %s: got %t, want %t", values, got, want)
		}
	}
}

func TestImagesComeFromTheRegistryOfAllCharts(t *testing.T) {
	for values, want := range map[string]string{
		"global: {imageRegistry: reg.example.com}":                                                   "reg.example.com/keyturn:devel",
		"{global: {imageRegistry: reg.example.com/}, image: {repository: ghcr.io/a/b}}":              "reg.example.com/a/b:devel",
		"{global: {imageRegistry: 'reg:5000'}, image: {repository: 'localhost/b', tag: v1}}":         "reg:5000/b:v1",
		"{global: {imageRegistry: reg}, image: {repository: a/b, tag: v1, name: stakater/reloader}}": "reg/a/b:v1",
	} {
		out, err := template(t, values)
		if err != nil || strings.Count(out, "image: "+want+"\n") != 3 {
			t.Errorf("with %s: got %v, want three times %s in\n%s", values, err, want, out)
		}
	}
}

func TestPullSecretsAreThoseOfAllCharts(t *testing.T) {
	all := rendered(t, "{imagePullSecrets: [{name: a}], global: {imagePullSecrets: [b, {name: c}]}, reloader: {deployment: {imagePullSecrets: [{name: a}]}}}")
	for program, object := range programs {
		if got := fmt.Sprint(all[object].at("spec", "template", "spec", "imagePullSecrets")); got != "[map[name:a] map[name:b] map[name:c]]" {
			t.Errorf("pull secrets of the %s: got %s", program, got)
		}
	}
}
