package actuate

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/keyturn/keyturn/internal/events"
)

func TestReloaderMetricsHaveReloadersNames(t *testing.T) {
	want := map[string]bool{
		"reloader_reload_executed_total": true, "reloader_reload_executed_total_by_namespace": true,
		"reloader_action_total": true, "reloader_action_latency_seconds": true, "reloader_skipped_total": true,
		"reloader_reconcile_total": true, "reloader_reconcile_duration_seconds": true, "reloader_events_received_total": true,
		"reloader_events_processed_total": true, "reloader_workloads_matched_total": true, "reloader_errors_total": true,
		"reloader_retries_total": true, "reloader_workloads_scanned_total": true, "reloader_workqueue_depth": true,
		"reloader_workqueue_adds_total": true, "reloader_workqueue_latency_seconds": true,
	}
	for _, instrument := range ReloaderInstruments() {
		name, err := instrument.Prometheus()
		if err != nil {
			t.Fatal(err)
		}
		if !want[name] {
			t.Errorf("Reloader has no %s", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestReloaderMetricsCountAsReloaderDoes(t *testing.T) {
	a, reader := measured(t)
	measure(t, a)
	collected := collect(t, reader)
	for _, tt := range []struct {
		name  string
		label attribute.KeyValue
	}{
		{"reloader.reload.executed", attribute.String("success", "true")},
		{"reloader.reload.executed", attribute.String("success", "false")},
		{"reloader.reload.executed.total.by.namespace", attribute.String("namespace", "shop")},
		{"reloader.action", attribute.String("workload_kind", "Deployment")},
		{"reloader.action", attribute.String("result", "error")},
		{"reloader.events.received", attribute.String("resource_type", "secrets")},
		{"reloader.reconcile", attribute.String("result", "success")},
		{"reloader.errors", attribute.String("type", "patch")},
		{"reloader.skipped", attribute.String("reason", "stale")},
		{"reloader.workloads.scanned", attribute.String("kind", "Deployment")},
		{"reloader.workqueue.adds", attribute.KeyValue{}},
		{"reloader.workqueue.latency", attribute.KeyValue{}},
	} {
		if got, ok := value(collected[tt.name], tt.label); !ok || got != 1 {
			t.Errorf("%s{%s}: got %d, there: %t, want 1", tt.name, tt.label.Value.AsString(), got, ok)
		}
	}
}

func TestReloadersEventTypes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mutate func(*events.Change)
		want   string
		of     string
	}{
		{"a change", nil, "update", "secrets"},
		{"a source that appeared", func(c *events.Change) { c.Created = true }, "add", "secrets"},
		{"one that was there", func(c *events.Change) { c.Verb = events.VerbObserved }, "add", "secrets"},
		{"a deletion", func(c *events.Change) { c.Verb = events.VerbDeleted }, "delete", "secrets"},
		{"a ConfigMap", func(c *events.Change) { c.Source.Kind = events.KindConfigMap }, "update", "configmaps"},
		{
			"what the CSI driver mounts", func(c *events.Change) { c.Source.Kind = events.KindSecretProviderClass },
			"update", "secretproviderclasspodstatuses",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := attribute.NewSet(reloaderEvent(changeOf(tt.mutate))...)
			if got, _ := set.Value("event_type"); got.AsString() != tt.want {
				t.Errorf("got %s, want %s", got.AsString(), tt.want)
			}
			if got, _ := set.Value("resource_type"); got.AsString() != tt.of {
				t.Errorf("of: got %s, want %s", got.AsString(), tt.of)
			}
		})
	}
}
