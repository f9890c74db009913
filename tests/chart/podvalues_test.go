package chart

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// programs are the objects whose pods are the two programs.
var programs = map[string]string{
	"watcher":  "Deployment keyturn-system/keyturn-watcher",
	"actuator": "StatefulSet keyturn-system/keyturn-actuator",
}

// podValues are the values of a program's pods below its name, each with the value of Reloader's chart that both programs get, if it has one, and with
// what it must add to the object.
var podValues = []struct{ name, values, reloader, path, want string }{
	{"its annotations", "annotations: {team: x}", "deployment: {annotations: {team: x}}", "metadata annotations team", "x"},
	{"labels of the pods", "podLabels: {team: x}", "deployment: {labels: {team: x}}", "spec template metadata labels team", "x"},
	{"labels that select Reloader's pods", "podLabels: {team: x}", "matchLabels: {team: x}", "spec template metadata labels team", "x"},
	{
		"annotations of the pods", "podAnnotations: {team: x}", "deployment: {pod: {annotations: {team: x}}}",
		"spec template metadata annotations team", "x",
	},
	{"nodes", "nodeSelector: {disk: ssd}", "deployment: {nodeSelector: {disk: ssd}}", "spec template spec nodeSelector disk", "ssd"},
	{"tolerations", "tolerations: [{key: a}]", "deployment: {tolerations: [{key: a}]}", "spec template spec tolerations", "- key: a"},
	{"a further argument", "extraArgs: [--settle=2s]", "", "spec template spec containers", "  - --settle=2s"},
	{
		"a further variable", "extraEnv: [{name: A, valueFrom: {secretKeyRef: {name: b, key: c}}}]", "", "spec template spec containers",
		"  - name: A\n    valueFrom:\n      secretKeyRef:\n        key: c\n        name: b",
	},
	{
		"volumes", "volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /v}]",
		"deployment: {volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /v}]}", "spec template spec volumes", "- name: v",
	},
}

func TestThePodsOfAProgramHaveItsValues(t *testing.T) {
	for _, test := range podValues {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for program, other := range map[string]string{"watcher": "actuator", "actuator": "watcher"} {
				all := rendered(t, program+": {"+test.values+"}")
				has(t, all, program, test.path, test.want)
				same(t, map[string]object{"other": rendered(t, "{}")[programs[other]]}, map[string]object{"other": all[programs[other]]})
				if test.reloader != "" {
					has(t, rendered(t, "reloader: {"+test.reloader+"}"), program, test.path, test.want)
				}
			}
			for _, program := range []string{"watcher", "actuator"} { // One pod is both.
				has(t, rendered(t, "{mode: single, "+program+": {"+test.values+"}}"), "keyturn", test.path, test.want)
			}
		})
	}
}

// sharedPodValues are values of the pods of all programs, with what they must add to the object of each.
var sharedPodValues = []struct{ name, values, reloader, path, want string }{
	{"labels", "commonLabels: {team: x}", "deployment: {labels: {team: x}}", "metadata labels team", "x"},
	{
		"affinity", "pod: {affinity: {podAffinity: {}}}", "deployment: {affinity: {podAffinity: {}}}",
		"spec template spec affinity", "podAffinity: {}",
	},
	{
		"spreading, of its own pods whatever Reloader's are called", "pod: {topologySpreadConstraints: [{topologyKey: zone}]}",
		"deployment: {topologySpreadConstraints: [{topologyKey: zone, labelSelector: {matchLabels: {app: reloader}}}]}",
		"spec template spec topologySpreadConstraints",
		"- labelSelector:\n    matchLabels:\n      app.kubernetes.io/name: LABEL\n  topologyKey: zone",
	},
	{"priority", "pod: {priorityClassName: high}", "deployment: {priorityClassName: high}", "spec template spec priorityClassName", "high"},
	{"a runtime", "pod: {runtimeClassName: gvisor}", "deployment: {runtimeClassName: gvisor}", "spec template spec runtimeClassName", "gvisor"},
	{"a scheduler", "pod: {schedulerName: mine}", "deployment: {schedulerName: mine}", "spec template spec schedulerName", "mine"},
	{"DNS", "pod: {dnsConfig: {searches: [a]}}", "deployment: {dnsConfig: {searches: [a]}}", "spec template spec dnsConfig", "searches:\n- a"},
	{"a user namespace", "pod: {hostUsers: false}", "deployment: {hostUsers: false}", "spec template spec hostUsers", "false"},
	{"a longer end", "pod: {terminationGracePeriodSeconds: 90}", "", "spec template spec terminationGracePeriodSeconds", "90"},
	{"a policy of DNS", "pod: {dnsPolicy: Default}", "", "spec template spec dnsPolicy", "Default"},
	{"names of hosts", "pod: {hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]}", "", "spec template spec hostAliases", "  ip: 10.0.0.1"},
	{"a user of the container", "securityContext: {runAsUser: 7}", "", "spec template spec containers", "    runAsUser: 7"},
}

func TestThePodsOfAllProgramsHaveTheValuesOfAll(t *testing.T) {
	for _, test := range sharedPodValues {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, program := range []string{"watcher", "actuator"} {
				has(t, rendered(t, test.values), program, test.path, test.want)
				if test.reloader != "" {
					has(t, rendered(t, "reloader: {"+test.reloader+"}"), program, test.path, test.want)
				}
			}
			has(t, rendered(t, "{mode: single, "+test.values+"}"), "keyturn", test.path, test.want)
		})
	}
}

func TestAValueMakesNoContainerLessStrict(t *testing.T) {
	out, err := template(t, "securityContext: {readOnlyRootFilesystem: false, allowPrivilegeEscalation: true, capabilities: {drop: []}}")
	if err != nil || strings.Contains(out, "readOnlyRootFilesystem: false") || strings.Contains(out, "allowPrivilegeEscalation: true") ||
		strings.Count(out, "- ALL") != 4 {
		t.Errorf("got %v and\n%s", err, out)
	}
}

func TestTheStrategyIsThatOfTheDeployments(t *testing.T) {
	const values = "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}"
	for values, want := range map[string]string{
		"{" + values + "}": "<nil> map[rollingUpdate:map[maxSurge:0] type:RollingUpdate]", "{mode: single}": "map[type:Recreate] <nil>",
		"{mode: single, " + values + "}": "map[rollingUpdate:map[maxSurge:0] type:RollingUpdate] <nil>",
	} {
		all := rendered(t, values)
		if got := fmt.Sprint(all[theOnePod].at("spec", "strategy"), " ", all[programs["watcher"]].at("spec", "strategy")); got != want {
			t.Errorf("with %s: one pod and the watcher have %s, want %s", values, got, want)
		}
	}
}

// has expects the value at a path of the object of a program, or of "keyturn" with one pod, to contain lines of YAML. LABEL in them is the program's.
func has(t *testing.T, all map[string]object, program, path, want string) {
	t.Helper()
	name, label := programs[program], "keyturn-"+program
	if program == "keyturn" {
		name, label = theOnePod, program
	}
	got, err := yaml.Marshal(all[name].at(strings.Fields(path)...))
	testkit.Must(t, err)
	if want := strings.ReplaceAll(want, "LABEL", label) + "\n"; !strings.Contains(string(got), want) {
		t.Errorf("%s of the %s: got\n%s\nwant\n%s", path, program, got, want)
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
		"{}": true, "pod: {priorityClassName: high}": false, "namespaces: [team-a]": false, "mode: single": false,
	} {
		if got := rendered(t, values)["PriorityClass <nil>/keyturn"] != nil; got != want {
			t.Errorf("with %s: got %t, want %t", values, got, want)
		}
	}
}

func TestImagesComeFromTheRegistryOfAllCharts(t *testing.T) {
	for values, want := range map[string]string{
		"global: {imageRegistry: reg.example.com}":                                                   "reg.example.com/keyturn/keyturn:devel",
		"{global: {imageRegistry: reg.example.com/}, image: {repository: ghcr.io/a/b}}":              "reg.example.com/a/b:devel",
		"{global: {imageRegistry: 'reg:5000'}, image: {repository: 'localhost/b', tag: v1}}":         "reg:5000/b:v1",
		"{global: {imageRegistry: reg}, image: {repository: a/b, tag: v1, name: stakater/reloader}}": "reg/a/b:v1",
	} {
		out, err := template(t, values)
		if err != nil || strings.Count(out, "image: "+want+"\n") != 4 {
			t.Errorf("with %s: got %v, want four times %s in\n%s", values, err, want, out)
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
