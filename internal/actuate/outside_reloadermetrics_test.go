//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/keyturn/keyturn/internal/actuate"
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
	for _, instrument := range actuate.ReloaderInstruments() {
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
	play(t, func(s *scene) {
		measured := s.instrument()
		s.options.ReloaderMetrics = true
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.settle()
		s.set("secret/db", "user", "two") // It is not read.
		s.settle()
		s.refuse("web", errors.New("no"))
		s.set("secret/db", "password", "three")
		s.settle()
		s.refuse("web", nil)
		s.pass(time.Minute)
		s.wantRolls("web", "web")
		got := measured.measurements()
		for _, tt := range []struct {
			name, key, label string
			want             int64
		}{
			{"reloader.reload.executed", "success", "true", 2},
			{"reloader.reload.executed", "success", "false", 1},
			{"reloader.reload.executed.total.by.namespace", "namespace", "shop", 3},
			{"reloader.action", "workload_kind", "Deployment", 3},
			{"reloader.action", "result", "error", 1},
			{"reloader.action.latency", "workload_kind", "Deployment", 2},
			{"reloader.events.received", "resource_type", "secrets", 3},
			{"reloader.events.processed", "result", "success", 3},
			{"reloader.reconcile", "result", "success", 3},
			{"reloader.reconcile.duration", "result", "success", 3},
			{"reloader.errors", "type", "patch", 1},
			{"reloader.retries", "", "", 1},
			{"reloader.skipped", "reason", "keys-not-consumed", 1},
			{"reloader.workloads.scanned", "kind", "Deployment", 3},
			{"reloader.workloads.matched", "kind", "Deployment", 3},
			{"reloader.workqueue.adds", "", "", 3},
			{"reloader.workqueue.latency", "", "", 3},
		} {
			if value, ok := got.value(tt.name, tt.key, tt.label); !ok || value != tt.want {
				t.Errorf("%s{%s}: got %d, there: %t, want %d", tt.name, tt.label, value, ok, tt.want)
			}
		}
	})
}

func TestReloadersEventTypes(t *testing.T) {
	play(t, func(s *scene) {
		measured := s.instrument()
		s.options.ReloaderMetrics = true
		s.start()
		s.pass(time.Second) // What is there before it has read the stream has not come.
		count := func(kind, of string) (sum int64) {
			for _, one := range measured.measurements().points("reloader.events.received") {
				has := func(key attribute.Key, want string) bool {
					value, ok := one.labels.Value(key)
					return ok && value.AsString() == want
				}
				if has("event_type", kind) && has("resource_type", of) {
					sum += one.value
				}
			}
			return sum
		}
		for _, tt := range []struct {
			name     string
			happens  func()
			kind, of string
		}{
			{"one that was there", func() { s.observe("secret/db") }, "add", "secrets"},
			{"a change", func() { s.set("secret/db", "password", "two") }, "update", "secrets"},
			{"a deletion", func() { s.erase("secret/db") }, "delete", "secrets"},
			{"a source that appeared", func() { s.set("secret/db", "password", "three") }, "add", "secrets"},
			{"a ConfigMap that was there", func() { s.observe("configmap/app") }, "add", "configmaps"},
			{"a change of a ConfigMap", func() { s.set("configmap/app", "user", "two") }, "update", "configmaps"},
			{
				"what the CSI driver mounts", func() { s.observe("secretproviderclass/bao") },
				"add", "secretproviderclasspodstatuses",
			},
			{
				"a change of what the CSI driver mounts", func() { s.set("secretproviderclass/bao", "password", "two") },
				"update", "secretproviderclasspodstatuses",
			},
		} {
			before := count(tt.kind, tt.of)
			tt.happens()
			s.pass(time.Second)
			if got := count(tt.kind, tt.of) - before; got != 1 {
				t.Errorf("%s: %d events %s of %s were counted, want 1", tt.name, got, tt.kind, tt.of)
			}
		}
	})
}
