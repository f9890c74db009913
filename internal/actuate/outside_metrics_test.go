//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/tests/testkit"
)

// everythingHappens plays what an actuator measures, failures included, and returns what was measured while it led, and after its end.
func everythingHappens(s *scene) []measurements {
	seen := s.instrument()
	s.options.Reloader.Metrics, s.options.LeaderElect = true, true
	s.syncs()
	s.readers("secret/db", "web", "refused")
	actuator := s.begin("secret/db")

	s.garble("secret/broken")
	s.refuse("refused", deniedByAdmission())
	s.set("secret/db", "password", "two", traced("a"))
	s.pass(2 * time.Minute)
	s.refuse("refused", nil)

	s.send(rotated(2)) // Nobody syncs what reads it, until that is given up.
	s.pass(10 * time.Minute)

	s.mark("secret/db")
	s.pass(time.Second)
	s.set("secret/db", "password", "three")
	s.pass(500 * time.Millisecond)
	s.nats.Stop() // Nobody takes the outcomes.
	s.pass(20 * time.Second)
	s.nats.Start()
	s.pass(time.Minute)
	leading := seen.measurements()

	for i := range 30 { // More Kubernetes Events than can be written when the actuator ends.
		s.edit("web", annotated("keyturn.dev/wave", "x"+strconv.Itoa(i)))
		s.pass(0)
	}
	actuator.stop()
	return []measurements{leading, seen.measurements()}
}

func TestWhatIsMeasuredHasTheLabelsOfItsDefinition(t *testing.T) {
	play(t, func(s *scene) {
		want, got := make(map[string]map[string]bool), make(map[string]map[string]bool)
		for _, instrument := range slices.Concat(actuate.Instruments(), actuate.ReloaderInstruments()) {
			want[instrument.Name] = make(map[string]bool)
			for _, label := range instrument.Labels {
				want[instrument.Name][label] = true
			}
		}
		for _, measured := range everythingHappens(s) {
			for name := range measured {
				if got[name] == nil {
					got[name] = make(map[string]bool)
				}
				for _, one := range measured.points(name) {
					for _, label := range one.labels.ToSlice() {
						got[name][string(label.Key)] = true
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("the labels of instruments (-definition +measured):\n%s", diff)
		}
	})
}

func TestAHistogramLeadsToTheTrace(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.set("secret/db", "password", "two", traced("a"))
		s.pass(10 * time.Second)
		measured := seen.measurements()
		if _, ok := measured["reloader.reload.executed"]; ok {
			s.Error("the names of Reloader are there although nobody wants them")
		}
		for _, name := range []string{
			"keyturn.change.patch.duration", "keyturn.change.ready.duration", "keyturn.rollout.duration", "messaging.process.duration",
		} {
			data, ok := measured[name].(metricdata.Histogram[float64])
			if !ok {
				s.Errorf("%s is not measured", name)
				continue
			}
			var traces []string
			for _, one := range data.DataPoints {
				for _, exemplar := range one.Exemplars {
					traces = append(traces, fmt.Sprintf("%x", exemplar.TraceID))
				}
			}
			if !slices.Contains(traces, strings.Repeat("a", 32)) {
				s.Errorf("the exemplars of %s are of the traces %q", name, traces)
			}
		}
	})
}

func TestAnEventIsMeasuredOnceEveryWorkloadIsFinishedWithIt(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"))
		s.workload("waiting", auto, reads("secret/other"), onHold)
		actuator := s.begin("secret/db", "secret/other")
		want := func(want int64) {
			s.Helper()
			if got, _ := seen.measurements().value("messaging.process.duration", "", ""); got != want {
				s.Errorf("after %s, %d events were measured, want %d", s.elapsed(), got, want)
			}
		}
		want(0) // What was there is no event that has come.
		s.set("secret/db", "password", "two")
		s.set("secret/other", "password", "two")
		s.pass(2 * time.Minute)
		want(1)
		actuator.stop() // One that is left to the next leader is not finished.
		want(1)
	})
}

// Prometheus' increase() does not see the first sample of a series: if it is that of the failures, nobody is told of them.
func TestFailuresAreCountedFromZero(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		kinds, err := s.options.Kinds()
		testkit.Must(s, err)
		var want []string
		for _, kind := range kinds {
			for _, reason := range []string{"aborted", "bake-failed", "deadline-exceeded", "reverted", "timed-out"} {
				want = append(want, fmt.Sprintf("%s failed %s 0", kind.Name, reason))
			}
		}
		var got []string
		for _, one := range seen.measurements().points("keyturn.rollouts") {
			labels := one.labels.ToSlice()
			got = append(got, fmt.Sprintf("%s %s %s %d",
				attributeOf(labels, "kind"), attributeOf(labels, "outcome"), attributeOf(labels, "reason"), one.value))
		}
		slices.Sort(want)
		slices.Sort(got)
		testkit.WantEqual(s, "before a rollout failed", want, got)
	})
}

func TestReloaderMetricsCountAsReloaderDoes(t *testing.T) {
	play(t, func(s *scene) {
		measured := s.instrument()
		s.options.Reloader.Metrics = true
		s.beginReading("secret/db#password")
		s.settled("secret/db", "password", "two")
		s.set("secret/db", "user", "two") // It is not read.
		s.settle()
		s.refuse("web", errors.New("no"))
		s.settled("secret/db", "password", "three")
		s.refuse("web", nil)
		s.pass(time.Minute)
		s.wantRolls("web", "web")
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
			measured.want(tt.name, tt.key, tt.label, tt.want)
		}
	})
}
