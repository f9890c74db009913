package tests

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// hangingOTLP is an endpoint that takes spans and never answers.
func hangingOTLP(t *testing.T) (endpoint string, asked <-chan struct{}) {
	t.Helper()
	first, over := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case first <- struct{}{}:
		default:
		}
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	return server.URL, first
}

func TestAnExporterThatIsNotThereDelaysNoRolloutAndLosesNoEvent(t *testing.T) {
	t.Parallel()
	hanging, asked := hangingOTLP(t)
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	// export is the timeout of an export in milliseconds: an hour, so that whatever waits for one never ends.
	const export = "3600000"
	for _, test := range []struct {
		name, endpoint string
		asked          <-chan struct{}
	}{
		{"when it hangs", hanging, asked},
		{"when it is down", "http://127.0.0.1:" + strconv.Itoa(port), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, programs.Options{
				ActuatorArgs: []string{"--settle", "50ms"},
				Env: []string{
					"OTEL_EXPORTER_OTLP_ENDPOINT=" + test.endpoint, "OTEL_BSP_SCHEDULE_DELAY=50",
					"OTEL_EXPORTER_OTLP_TIMEOUT=" + export, "OTEL_BSP_EXPORT_TIMEOUT=" + export,
					// So few that spans are lost for lack of space, not of time.
					"OTEL_BSP_MAX_QUEUE_SIZE=4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=2",
				},
			})
			const changes = 5
			r.secret("db", map[string]string{"password": "0"})
			r.deploy(r.reading("web", "db", 1, nil))
			r.start()
			for i := range changes {
				r.secret("db", map[string]string{"password": strconv.Itoa(i + 1)})
				r.eventually("the change is rolled out", func(context.Context) bool { return r.count("web", events.VerbCompleted) == i+1 })
			}
			if test.asked != nil {
				testkit.Receive(t, "the request of an export", test.asked)
			}
			r.quiet()
			r.eventually("the spans that are lost are counted", func(ctx context.Context) bool {
				_, metrics, err := r.actuator.Get(ctx, "metrics", "/metrics")
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(metrics) {
					lost := strings.Contains(line, `outcome="dropped"`) || strings.Contains(line, `outcome="failed"`)
					if strings.HasPrefix(line, "keyturn_telemetry_spans_total{") && lost {
						return true
					}
				}
				return false
			})
			for _, program := range []*programs.Program{r.watcher, r.actuator} {
				// Any other error is that not all spans could be sent.
				var exit *exec.ExitError
				if err := program.Stop(patience); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
					t.Errorf("the %s does not end by itself: %v", program.Name(), err)
				}
			}
		})
	}
}

// count counts the outcomes of a kind at a Deployment.
func (r *rig) count(name string, verb events.Verb) int {
	r.Helper()
	count := 0
	for _, outcome := range r.outcomes() {
		if outcome.Workload.Name == name && outcome.Verb == verb {
			count++
		}
	}
	return count
}
