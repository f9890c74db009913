package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// objectValues are values that add or change objects, as Keyturn's and as Reloader's, and what one of the objects must have.
var objectValues = []struct{ name, values, reloader, object, path, want string }{
	{
		"annotations of the accounts", "{watcher: {serviceAccount: {annotations: {role: a}}}}", "serviceAccount: {annotations: {role: a}}",
		"ServiceAccount keyturn-system/keyturn-watcher", "metadata annotations", "role: a",
	},
	{
		"labels of the accounts", "commonLabels: {role: a}", "serviceAccount: {labels: {role: a}}",
		"ServiceAccount keyturn-system/keyturn-actuator", "metadata labels", "role: a",
	},
	{
		"labels of the roles", "commonLabels: {role: a}", "rbac: {labels: {role: a}}",
		"ClusterRole <nil>/keyturn-watcher", "metadata labels", "role: a",
	},
	{
		"who may read the metrics", "networkPolicy: {from: [{podSelector: {}}]}", "netpol: {enabled: true, from: [{podSelector: {}}]}",
		"NetworkPolicy keyturn-system/keyturn-watcher", "spec ingress", "- from:\n  - podSelector: {}\n  ports:\n  - port: 8080",
	},
	{
		"where the API server is", "networkPolicy: {to: [{ipBlock: {cidr: 10.0.0.1/32}}]}", "netpol: {enabled: true, to: [{ipBlock: {cidr: 10.0.0.1/32}}]}",
		"NetworkPolicy keyturn-system/keyturn-actuator", "spec egress",
		"- ports:\n  - port: 443\n  - port: 6443\n  to:\n  - ipBlock:\n      cidr: 10.0.0.1/32",
	},
	{
		"how pods are scraped", "monitoring: {enabled: true, podMonitor: {interval: 30s, scrapeTimeout: 5s, honorLabels: true, relabelings: [{action: drop}]}}",
		"podMonitor: {enabled: true, interval: 30s, timeout: 5s, honorLabels: true, relabelings: [{action: drop}]}",
		"PodMonitor keyturn-system/keyturn-actuator", "spec podMetricsEndpoints",
		"- honorLabels: true\n  interval: 30s\n  path: /metrics\n  port: http-prom\n  relabelings:\n  - action: drop\n  scrapeTimeout: 5s",
	},
	{
		"labels of the monitors", "monitoring: {enabled: true, labels: {release: prom}, podMonitor: {podTargetLabels: [team]}}",
		"serviceMonitor: {enabled: true, labels: {release: prom}, targetLabels: [team]}",
		"PodMonitor keyturn-system/keyturn-watcher", "metadata labels", "release: prom",
	},
	{
		"an autoscaler", "verticalPodAutoscaler: {enabled: true, minAllowed: {memory: 64Mi}}", "verticalPodAutoscaler: {enabled: true, minAllowed: {memory: 64Mi}}",
		"VerticalPodAutoscaler keyturn-system/keyturn-watcher", "spec resourcePolicy containerPolicies", "- containerName: watcher\n  minAllowed:\n    memory: 64Mi",
	},
}

func TestValuesShapeTheObjects(t *testing.T) {
	for _, test := range objectValues {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, values := range []string{test.values, "reloader: {" + test.reloader + "}"} {
				got, err := yaml.Marshal(rendered(t, values)[test.object].at(strings.Fields(test.path)...))
				if err != nil || !strings.Contains(string(got), test.want+"\n") {
					t.Errorf("%s with %s: got %v and\n%swant\n%s", test.path, values, err, got, test.want)
				}
			}
		})
	}
}

// A container without a policy of its own has those of the operator, which know nothing of the bounds.
func TestTheAutoscalerBoundsEachContainer(t *testing.T) {
	for _, tt := range []struct {
		name, url, program string
		want               []string
	}{
		{"the watcher", "", "watcher", []string{"watcher"}},
		{"the actuator with its NATS", "", "actuator", []string{"actuator", "nats"}},
		{"the actuator with a NATS of your own", "nats://nats.nats.svc:4222", "actuator", []string{"actuator"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := rendered(t, fmt.Sprintf("{verticalPodAutoscaler: {enabled: true, minAllowed: {memory: 64Mi}}, nats: {url: %q}}", tt.url))
			var want []any
			for _, container := range tt.want {
				want = append(want, map[string]any{"containerName": container, "minAllowed": map[string]any{"memory": "64Mi"}})
			}
			got := all["VerticalPodAutoscaler keyturn-system/keyturn-"+tt.program].at("spec", "resourcePolicy", "containerPolicies")
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAccountThatExistsIsUsed(t *testing.T) {
	all := rendered(t, "{watcher: {serviceAccount: {create: false, name: reader}}, actuator: {serviceAccount: {name: roller}}, reloader: {serviceAccount: {name: x}}}")
	if all["ServiceAccount keyturn-system/reader"] != nil || all["ServiceAccount keyturn-system/roller"] == nil {
		t.Error("want an account for the actuator alone")
	}
	for program, account := range map[string]string{"watcher": "reader", "actuator": "roller"} {
		if got := all[programs[program]].at("spec", "template", "spec", "serviceAccountName"); got != account {
			t.Errorf("account of the %s: got %v, want %s", program, got, account)
		}
		subjects := all["ClusterRoleBinding <nil>/keyturn-"+program]["subjects"]
		want := []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": systemNamespace}}
		if diff := cmp.Diff(any(want), subjects); diff != "" {
			t.Errorf("who gets the rights of the %s (-want +got):\n%s", program, diff)
		}
	}
	if got := fmt.Sprint(all["RoleBinding keyturn-system/keyturn-actuator-leader"]["subjects"]); !strings.Contains(got, "roller") {
		t.Errorf("who gets the Lease: got %s", got)
	}
}

func TestAnAccountThatExistsHasAName(t *testing.T) {
	refuses(t, "watcher: {serviceAccount: {create: false}}", "watcher.serviceAccount.name: is empty, want the account to use if create is false\n")
}

func TestNoTwoProgramsShareAnAccount(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{
			"one for both", "{watcher: {serviceAccount: {create: false, name: reloader}}, actuator: {serviceAccount: {create: false, name: reloader}}}",
			`actuator.serviceAccount.name: is "reloader", as is watcher.serviceAccount.name, want two accounts: one with both permissions could`,
		},
		{
			"that of the other program", "watcher: {serviceAccount: {name: keyturn-actuator}}",
			`actuator.serviceAccount.name: is "keyturn-actuator", as is watcher.serviceAccount.name, want two accounts`,
		},
		{
			"that of the job of the keys", "watcher: {serviceAccount: {name: keyturn-keys}}",
			`watcher.serviceAccount.name: is "keyturn-keys", which has other permissions, want another name`,
		},
		{
			"that of the projector", "actuator: {serviceAccount: {create: false, name: keyturn-projector}}",
			`actuator.serviceAccount.name: is "keyturn-projector", which has other permissions, want another name`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			refuses(t, test.values, test.want)
		})
	}
}

func TestWithoutRightsThereAreNoRoles(t *testing.T) {
	for _, values := range []string{"rbac: {create: false}", "reloader: {rbac: {enabled: false}}"} {
		for name := range rendered(t, values) {
			if strings.Contains(name, "Role") {
				t.Errorf("with %s there is %s", values, name)
			}
		}
	}
}

func TestMonitorsCanBeInAnotherNamespace(t *testing.T) {
	monitor := rendered(t, "reloader: {podMonitor: {enabled: true, namespace: prometheus}}")["PodMonitor prometheus/keyturn-watcher"]
	if got := fmt.Sprint(monitor.at("spec", "namespaceSelector")); got != "map[matchNames:[keyturn-system]]" {
		t.Errorf("namespaces: got %s", got)
	}
}

func TestReloadersServiceHasTheMetrics(t *testing.T) {
	all := rendered(t, "reloader: {service: {port: 9090, labels: {a: b}, annotations: {c: d}, ipFamilyPolicy: PreferDualStack}}")
	const want = "map[ipFamilyPolicy:PreferDualStack ports:[map[name:http port:9090 targetPort:http-prom]] " +
		"selector:map[app.kubernetes.io/part-of:keyturn]]"
	if got := fmt.Sprint(all["Service keyturn-system/keyturn-metrics"]["spec"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOpenShiftAssignsTheUser(t *testing.T) {
	out, err := template(t, "reloader: {isOpenshift: true}")
	if err != nil || strings.Contains(out, "65532") || strings.Count(out, "runAsNonRoot: true") != 3 {
		t.Errorf("got %v and\n%s", err, out)
	}
}

// A quota or a LimitRange of the namespace refuses a pod without the resources that it asks for.
func TestThePodsOfTheJobAndTheTestHaveTheirResources(t *testing.T) {
	const values = "keys: {resources: {requests: {memory: 64Mi}, limits: {cpu: 100m}}}"
	const want = "map[limits:map[cpu:100m memory:128Mi] requests:map[cpu:10m memory:64Mi]]"
	all := withTests(t, values)
	job, _ := all["Job keyturn-system/keyturn-keys"].at("spec", "template").(map[string]any)
	for name, pod := range map[string]object{"the job": job, "the test": all["Pod keyturn-system/keyturn-test"]} {
		containers, _ := pod.at("spec", "containers").([]any)
		if len(containers) == 0 {
			t.Errorf("%s has no container", name)
		}
		for _, container := range containers {
			container := object(container.(map[string]any))
			if got := fmt.Sprint(container["resources"]); got != want {
				t.Errorf("%s, container %s: got %s, want %s", name, container["name"], got, want)
			}
		}
	}
}

// Whatever keeps other pods off the nodes keeps the job off them, without which none of the others starts.
func TestThePodsOfTheJobAndTheTestGoWhereTheyMay(t *testing.T) {
	const fields, affinity = "nodeSelector: {a: b}, tolerations: [{key: c}]", "affinity: {podAffinity: {}}, priorityClassName: high"
	for values, want := range map[string]string{
		"{pod: {" + affinity + "}, actuator: {podLabels: {team: x}, podAnnotations: {note: z}, " + fields + "}}": "high x z",
		"reloader: {deployment: {" + affinity + ", " + fields + "}}":                                             "high <nil> <nil>",
	} {
		all := withTests(t, values)
		job, _ := all["Job keyturn-system/keyturn-keys"].at("spec", "template").(map[string]any)
		for name, pod := range map[string]object{"the job": job, "the test": all["Pod keyturn-system/keyturn-test"]} {
			got := fmt.Sprint(pod.at("spec", "priorityClassName"), " ", pod.at("metadata", "labels", "team"), " ", pod.at("metadata", "annotations", "note"))
			if got != want {
				t.Errorf("%s with %s: got %s, want %s", name, values, got, want)
			}
			where := fmt.Sprint(pod.at("spec", "nodeSelector"), pod.at("spec", "tolerations"), pod.at("spec", "affinity"))
			if want := "map[a:b kubernetes.io/os:linux][map[key:c]]map[podAffinity:map[]]"; strings.ReplaceAll(where, " ", "") != strings.ReplaceAll(want, " ", "") {
				t.Errorf("%s with %s: got %s, want %s", name, values, where, want)
			}
		}
	}
}
