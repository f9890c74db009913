//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
)

func TestReloaderMetricsHaveReloadersNames(t *testing.T) {
	want := map[string]bool{
		"reloader_reload_executed_total": true, "reloader_reload_executed_total_by_namespace": true, "reloader_action_total": true,
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
		started := measured.measurements()
		for _, success := range []string{"true", "false"} {
			if value, ok := started.value("reloader.reload.executed", "success", success); !ok || value != 0 {
				t.Errorf("at the start, reloader.reload.executed{%s} is %d, there: %t, want 0", success, value, ok)
			}
		}
		s.settled("secret/db", "password", "two")
		s.set("secret/db", "user", "two") // It is not read.
		s.settle()
		s.refuse("web", errors.New("no"))
		s.settled("secret/db", "password", "three")
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
		} {
			if value, ok := got.value(tt.name, tt.key, tt.label); !ok || value != tt.want {
				t.Errorf("%s{%s}: got %d, there: %t, want %d", tt.name, tt.label, value, ok, tt.want)
			}
		}
	})
}
