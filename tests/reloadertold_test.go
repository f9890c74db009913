package tests

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// reloadersMetrics are all metrics of Reloader with the names of their labels.
var reloadersMetrics = map[string][]string{
	"reloader_reload_executed_total":              {"success"},
	"reloader_reload_executed_total_by_namespace": {"namespace", "success"},
	"reloader_reconcile_total":                    {"result"},
	"reloader_reconcile_duration_seconds":         {"result"},
	"reloader_action_total":                       {"result", "workload_kind"},
	"reloader_action_latency_seconds":             {"workload_kind"},
	"reloader_skipped_total":                      {"reason"},
	"reloader_workqueue_depth":                    nil,
	"reloader_workqueue_adds_total":               nil,
	"reloader_workqueue_latency_seconds":          nil,
	"reloader_errors_total":                       {"type"},
	"reloader_retries_total":                      nil,
	"reloader_events_received_total":              {"event_type", "resource_type"},
	"reloader_events_processed_total":             {"event_type", "resource_type", "result"},
	"reloader_workloads_scanned_total":            {"kind"},
	"reloader_workloads_matched_total":            {"kind"},
	"rest_client_requests_total":                  {"code", "host", "method"},
	"rest_client_request_duration_seconds":        {"host", "verb"},
}

var (
	sample = regexp.MustCompile(`^(?:reloader|rest_client)_\w+(?:\{[^}]*\})? `)
	label  = regexp.MustCompile(`(\w+)="`)
)

// reloadersSamples returns the metrics with Reloader's prefixes that the actuator serves, with the names of their labels.
func (r *rig) reloadersSamples() map[string][]string {
	r.Helper()
	_, metrics, err := r.actuator.Get(r.Context(), "metrics", "/metrics")
	if err != nil {
		r.Fatal(err)
	}
	served := map[string][]string{}
	for line := range strings.Lines(metrics) {
		name, labels, _ := strings.Cut(strings.TrimSpace(sample.FindString(line)), "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		if name == "" || strings.Contains(labels, `le="`) {
			continue
		}
		var names []string
		for _, found := range label.FindAllStringSubmatch(labels, -1) {
			names = append(names, found[1])
		}
		slices.Sort(names)
		served[name] = names
	}
	return served
}

func TestUsersOfReloaderSeeItsMetricsAndKubernetesEvents(t *testing.T) {
	t.Parallel() // most of it is waiting between tries
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--reloader", "--reloader-metrics"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.deploy(r.reading("frozen", "db", 1, nil))
	r.secret("other", map[string]string{"password": "one"})
	another := programs.NewDeployment(r.namespace, "another", 1, map[string]string{"keyturn.dev/roll-on": "auto"})
	programs.ReadSecretKey(&another.Spec.Template, "other", "password")
	r.deploy(another)
	r.denyUpdates("frozen")
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	r.outcomeOf("frozen", events.VerbFailed)
	r.secret("other", map[string]string{"password": "two"}) // Only of this event every workload is finished.
	r.outcomeOf("another", events.VerbCompleted)
	r.set(events.KindSecret, "other", "user", "app") // Nobody reads that.
	r.quiet()

	if diff := cmp.Diff(reloadersMetrics, r.reloadersSamples()); diff != "" {
		t.Errorf("names and labels of metrics (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name   string
		labels []string
		want   string
	}{
		{"reloader_reload_executed_total", []string{`success="true"`}, "2"},
		{"reloader_reload_executed_total_by_namespace", []string{`success="true"`, `namespace="` + r.namespace + `"`}, "2"},
		{"reloader_action_total", []string{`workload_kind="Deployment"`, `result="success"`}, "2"},
		{"reloader_events_received_total", []string{`event_type="update"`, `resource_type="secrets"`}, "3"},
	} {
		if got := r.series(r.actuator, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%v: got %q, want %s", tt.name, tt.labels, got, tt.want)
		}
	}
	for _, name := range []string{"rest_client_requests_total", "keyturn_kubernetes_requests_total"} {
		if got := r.series(r.actuator, name, `method="PATCH"`, `code="200"`); got == "" {
			t.Errorf("%s: no patch is counted", name)
		}
	}

	for _, tt := range []struct{ deployment, reason, eventType, want string }{
		{
			"web", "Reloaded", corev1.EventTypeNormal, "Changes detected in 'db' of type 'SECRET' in namespace '" + r.namespace +
				"', Updated 'web' of type 'Deployment' in namespace '" + r.namespace + "'",
		},
		{
			"frozen", "ReloadFail", corev1.EventTypeWarning,
			"Update for 'frozen' of type 'Deployment' in namespace '" + r.namespace + "' failed with error ",
		},
	} {
		r.eventually("there is a Kubernetes Event "+tt.reason, func(context.Context) bool { return len(r.kubeEvents(tt.deployment, tt.reason)) > 0 })
		list := r.kubeEvents(tt.deployment, tt.reason)
		if len(list) != 1 || list[0].Type != tt.eventType || !strings.HasPrefix(list[0].Message, tt.want) {
			t.Errorf("%d Kubernetes Events %s, the first is %s %q, want %s %q", len(list), tt.reason, list[0].Type, list[0].Message, tt.eventType, tt.want)
		}
	}
	for _, reason := range []string{"Reloaded", "RolloutCompleted"} {
		if got := r.kubeEvents("frozen", reason); len(got) != 0 {
			t.Errorf("what was not rolled has a Kubernetes Event: %s", got[0].Message)
		}
	}
}
