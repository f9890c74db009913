package chart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// settings is the ConfigMap with the variables of both programs, and metaInfo the one that tells tools about Reloader.
const (
	settings = "ConfigMap keyturn-system/keyturn"
	metaInfo = "ConfigMap keyturn-system/reloader-meta-info"
)

func TestWhoDoesNotComeFromReloaderSeesNothingOfIt(t *testing.T) {
	// The policy is the same for everyone, with a switch for Reloader: TestTheAdmissionPolicyFollowsTheValues.
	out, err := template(t, "admissionPolicy: {enabled: false}")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, word := range []string{"KEYTURN_RELOADER", "stakater", "meta-info"} {
		if strings.Contains(out, word) {
			t.Errorf("%s is named in\n%s", word, out)
		}
	}
}

func TestReloadersModeIsOnWithAnyOfItsValues(t *testing.T) {
	for _, values := range []string{"reloaderMode: true", "reloader: {logLevel: info}"} {
		all := rendered(t, values)
		if got := all[settings].at("data", "KEYTURN_RELOADER"); got != "on,metrics,strategy=env-vars" {
			t.Errorf("with %s: got KEYTURN_RELOADER %v", values, got)
		}
		if got := all[settings].at("data", "KEYTURN_ROLL_ON_CREATE"); got != "never" {
			t.Errorf("with %s: got KEYTURN_ROLL_ON_CREATE %v", values, got)
		}
		if all[metaInfo] == nil {
			t.Errorf("with %s there is no %s", values, metaInfo)
		}
	}
}

func TestReloadersModeLetsEveryoneReadTheMetrics(t *testing.T) {
	for values, want := range map[string]string{
		"reloaderMode: true":                                              "[map[ports:[map[port:8080]]]]",
		"reloader: {netpol: {enabled: true}}":                             "[map[ports:[map[port:8080]]]]",
		"reloader: {netpol: {enabled: false, from: [{podSelector: {}}]}}": "[map[ports:[map[port:8080]]]]",
		"reloader: {netpol: {enabled: true, from: [{podSelector: {}}]}}":  "[map[from:[map[podSelector:map[]]] ports:[map[port:8080]]]]",
	} {
		policy := rendered(t, values)["NetworkPolicy keyturn-system/keyturn-watcher"]
		if got := fmt.Sprint(policy.at("spec", "ingress")); got != want {
			t.Errorf("with %s: got %s, want %s", values, got, want)
		}
	}
}

func TestReloadersOptionsArePublished(t *testing.T) {
	info := rendered(t, `{image: {tag: v1}, reloader: {autoReloadAll: true, ignoreSecrets: true, ignoreNamespaces: 'a, b', namespaceSelector: 'c:d',
		reloadStrategy: default, custom_annotations: {auto: example.org/auto}}}`)[metaInfo]
	if got := info.at("metadata", "labels", "reloader.stakater.com/meta-info"); got != "reloader" {
		t.Errorf("label: got %v", got)
	}
	read := func(key string) map[string]any {
		var value map[string]any
		if err := json.Unmarshal([]byte(fmt.Sprint(info.at("data", key))), &value); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return value
	}
	options := read("reloaderOptions")
	got := map[string]any{}
	want := map[string]any{
		"autoReloadAll": true, "resourcesToIgnore": []any{"secrets"}, "namespacesToIgnore": []any{"a", "b"}, "reloadStrategy": "env-vars",
		"namespaceSelectors":        []any{"c=d"},
		"reloaderAutoAnnotation":    "example.org/auto",
		"autoSearchAnnotation":      "reloader.stakater.com/search",
		"pauseDeploymentAnnotation": "deployment.reloader.stakater.com/pause-period",
		"isArgoRollouts":            false, "enableHA": false, "webhookUrl": "",
	}
	for name := range want {
		got[name] = options[name]
	}
	testkit.WantEqual(t, "options", want, got)
	if got := read("buildInfo")["releaseVersion"]; got != "v1" {
		t.Errorf("version: got %v", got)
	}
	testkit.WantEqual(t, "deployment", map[string]any{"name": "keyturn-actuator", "namespace": systemNamespace}, read("deploymentInfo"))
}

// One of Reloader's metrics has the label namespace, which Prometheus otherwise takes for that of the pod.
func TestReloadersMonitorsKeepTheLabelsOfItsMetrics(t *testing.T) {
	for values, want := range map[string]any{
		"monitoring: {enabled: true}":                                                                                  nil,
		"{reloaderMode: true, monitoring: {enabled: true}}":                                                            true,
		"{reloaderMode: true, monitoring: {enabled: true, podMonitor: {honorLabels: false}}}":                          false,
		"reloader: {podMonitor: {enabled: true}}":                                                                      true,
		"reloader: {serviceMonitor: {enabled: true}}":                                                                  true,
		"reloader: {serviceMonitor: {enabled: true, honorLabels: false}}":                                              false,
		"{reloader: {podMonitor: {enabled: true}}, monitoring: {podMonitor: {honorLabels: false}}}":                    false,
		"{reloader: {podMonitor: {enabled: true, honorLabels: true}}, monitoring: {podMonitor: {honorLabels: false}}}": true,
	} {
		endpoints := rendered(t, values)["PodMonitor keyturn-system/keyturn-actuator"].at("spec", "podMetricsEndpoints").([]any)
		if got := endpoints[0].(map[string]any)["honorLabels"]; got != want {
			t.Errorf("with %s: got honorLabels %v, want %v", values, got, want)
		}
	}
}

func TestIgnoredCronJobsAreNotGranted(t *testing.T) {
	rights := func(values string) string {
		return strings.Join(rendered(t, values)["ClusterRole <nil>/keyturn-actuator"]["rules"].([]string), ", ")
	}
	if got := rights("reloader: {ignoreCronJobs: true}"); strings.Contains(got, "cronjobs") || !strings.Contains(got, "deployments") {
		t.Errorf("got %s", got)
	}
	if got := rights("reloaderMode: true"); !strings.Contains(got, "patch cronjobs.batch") {
		t.Errorf("got %s", got)
	}
}

func TestReloadersModeMayWhatItDoesWithJobs(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "",
		"{reloaderMode: true, jobs: {enabled: false}}":       "",
		"reloaderMode: true":                                 "[create jobs.batch delete jobs.batch get jobs.batch list jobs.batch patch jobs.batch watch jobs.batch]",
		"reloader: {ignoreCronJobs: true}":                   "[create jobs.batch delete jobs.batch get jobs.batch list jobs.batch patch jobs.batch watch jobs.batch]",
		"reloader: {ignoreJobs: true}":                       "[create jobs.batch get jobs.batch]",
		"reloader: {ignoreCronJobs: true, ignoreJobs: true}": "",
	} {
		got := ""
		if role := rendered(t, values)["ClusterRole <nil>/keyturn-actuator-jobs"]; role != nil {
			rights, _ := role["rules"].([]string)
			slices.Sort(rights)
			got = fmt.Sprint(rights)
		}
		if got != want {
			t.Errorf("with %s: got %s, want %s", values, got, want)
		}
	}
	data, _ := rendered(t, "reloaderMode: true")[settings]["data"].(map[string]any)
	if data["KEYTURN_JOBS"] != "start,recreate" {
		t.Errorf("got %v", data)
	}
}

// TestEveryVariableOfTheChartIsAFlag finds a variable that no program reads, which would be ignored.
func TestEveryVariableOfTheChartIsAFlag(t *testing.T) {
	var pages strings.Builder
	for _, program := range []string{"watcher", "actuator"} {
		pages.WriteString(testkit.ReadFile(t, "../../docs/reference/flags-"+program+".md"))
	}
	data, _ := rendered(t, `{secretStores: {enabled: true}, selector: a, reloader: {autoReloadAll: true, isArgoRollouts: true, namespaceSelector: a,
		reloadOnDelete: true, ignoreCronJobs: true, enableCSIIntegration: true, ignoreSecrets: true, logLevel: debug, enableMetricsByNamespace: true, custom_annotations: {auto: a/b}}}`)[settings]["data"].(map[string]any)
	if len(data) < 10 {
		t.Errorf("got %d variables", len(data))
	}
	for name := range data {
		if !strings.Contains(pages.String(), "`"+name+"`") {
			t.Errorf("%s is no flag of a program", name)
		}
	}
}
