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

// reloadersMetrics are the metrics of Reloader that an actuator serves, with the names of their labels.
var reloadersMetrics = map[string][]string{
	"reloader_reload_executed_total":              {"success"},
	"reloader_reload_executed_total_by_namespace": {"namespace", "success"},
	"reloader_action_total":                       {"result", "workload_kind"},
}

var (
	sample = regexp.MustCompile(`^reloader_\w+(?:\{[^}]*\})? `)
	label  = regexp.MustCompile(`(\w+)="`)
)

// reloadersSamples returns the metrics with Reloader's prefix that the actuator serves, with the names of their labels.
func (r *rig) reloadersSamples() map[string][]string {
	r.Helper()
	_, metrics, err := r.actuator.Get(r.Context(), "metrics", "/metrics")
	if err != nil {
		r.Fatal(err)
	}
	served := map[string][]string{}
	for line := range strings.Lines(metrics) {
		name, labels, _ := strings.Cut(strings.TrimSpace(sample.FindString(line)), "{")
		if name == "" {
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
	r.denyUpdates("frozen")
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	r.outcomeOf("frozen", events.VerbFailed)
	r.quiet()

	if diff := cmp.Diff(reloadersMetrics, r.reloadersSamples()); diff != "" {
		t.Errorf("names and labels of metrics (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name   string
		labels []string
		want   string
	}{
		{"reloader_reload_executed_total", []string{`success="true"`}, "1"},
		{"reloader_reload_executed_total_by_namespace", []string{`success="true"`, `namespace="` + r.namespace + `"`}, "1"},
		{"reloader_action_total", []string{`workload_kind="Deployment"`, `result="success"`}, "1"},
	} {
		if got := r.series(r.actuator, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%v: got %q, want %s", tt.name, tt.labels, got, tt.want)
		}
	}
	if got := r.series(r.actuator, "keyturn_kubernetes_requests_total", `method="PATCH"`, `code="200"`); got == "" {
		t.Error("keyturn_kubernetes_requests_total: no patch is counted")
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
