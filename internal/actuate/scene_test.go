//go:build !race

package actuate_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// namespace is where the workloads and the sources of a scene are, unless their names say another one, as in "office/web".
const namespace = "shop"

// scene is a cluster with a stream, in a bubble of testing/synctest. A test says what happens there: workloads and sources are made and change,
// patches are refused, rollouts go on or fail, actuators come and go, and time passes. Then it says what it wants to have happened since it last
// said so: which workloads were rolled, which got a record, and what was told. It cannot see how an actuator does that.
type scene struct {
	*testing.T
	*cluster
	*watcher
	nats *natstest.BubbleServer
	bus  *bus.Bus
	nc   *nats.Conn
	// options are those of the next actuator.
	options actuate.Options

	running []*running
	// seen counts the rolls and records that a want has compared, and read is the sequence of the last outcome that it has read.
	seen int
	read uint64

	mu  sync.Mutex
	log bytes.Buffer
}

// play runs a test in a scene, whose clock begins at midnight of the year 2000.
func play(t *testing.T, story func(s *scene)) {
	t.Helper()
	natstest.InBubble(t, func(t *testing.T, server *natstest.BubbleServer) {
		s := &scene{T: t, cluster: newCluster(t), nats: server, nc: server.Connect()}
		defer s.end()
		stream, err := bus.Open(t.Context(), s.nc, "demo", nil)
		testkit.Must(t, err)
		s.bus = stream
		s.watcher = newWatcher(t, s.cluster, stream)
		s.options = actuate.DefaultOptions()
		s.options.Cluster, s.options.LeaderElect = "demo", false
		s.options.StoreAccess = "testdata/every-store.yaml"
		s.options.Logger = slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s.options.Tracer, s.options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
		story(s)
	})
}

// playOf plays a scene of a table.
func playOf(t *testing.T, name string, story func(s *scene)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { play(t, story) })
}

func (s *scene) end() {
	for _, r := range s.running {
		r.stop()
	}
	s.nc.Close()
	s.cluster.end()
	if s.Failed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Logf("the log of the actuators:\n%s", s.log.String())
	}
}

// Write appends to the log of the actuators.
func (s *scene) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// running is an actuator that runs.
type running struct {
	*actuate.Actuator
	// stop ends it as a program ends, and kill as a machine does: it writes and tells nothing more, and keeps its Lease.
	stop, kill func()
}

// start starts an actuator, and waits until it has nothing more to do. Several need options.LeaderElect.
func (s *scene) start() *running {
	s.Helper()
	return s.startAfter(func(*fake.Clientset) {})
}

// startAfter is like start, but first the function may prepare what answers the requests of the actuator.
func (s *scene) startAfter(prepare func(*fake.Clientset)) *running {
	s.Helper()
	api := s.connect()
	prepare(api.client)
	s.options.Client = api.client
	a, err := actuate.New(s.options)
	testkit.Must(s, err)
	nc := s.nats.Connect()
	stream, err := bus.Open(s.Context(), nc, "demo", nil)
	testkit.Must(s, err)
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, stream) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("the actuator ended with an error: %v", err)
		}
		nc.Close()
	})
	r := &running{Actuator: a, stop: stop, kill: func() {
		api.cut.Store(true)
		nc.Close()
		stop()
	}}
	s.running = append(s.running, r)
	synctest.Wait()
	return r
}

// restart stops the actuators, and starts one.
func (s *scene) restart() *running {
	s.Helper()
	for _, r := range s.running {
		r.stop()
	}
	s.running = nil
	return s.start()
}

// pass lets time pass.
func (s *scene) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // The time of a bubble.
	synctest.Wait()
}

// settle lets the debounce window of a change pass.
func (s *scene) settle() { s.pass(s.options.Settle + 100*time.Millisecond) }

// wantRolls wants these workloads to have been rolled since it was last called, in any order, and no others. One that was rolled twice is named twice.
func (s *scene) wantRolls(workloads ...string) {
	s.Helper()
	s.wantAll("rolled", workloads, s.whoRolled())
}

// wantAll wants texts, in any order.
func (s *scene) wantAll(what string, want, got []string) {
	s.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s after %s (-want +got):\n%s", what, s.elapsed(), diff)
	}
}

// wantNothing wants no workload to have been patched, and nothing to have been told, since the last want of each.
func (s *scene) wantNothing() {
	s.Helper()
	for _, w := range s.writesSince(&s.seen) {
		s.Errorf("after %s, %s is patched: %s", s.elapsed(), w.workload, w.body)
	}
	s.wantTold()
}

// wantTold wants these outcomes to have been told since it was last called, in any order of the workloads: "web started content-changed".
func (s *scene) wantTold(outcomes ...string) {
	s.Helper()
	got := s.told()
	byWorkload := func(a, b string) int { return strings.Compare(firstWord(a), firstWord(b)) }
	slices.SortStableFunc(got, byWorkload)
	slices.SortStableFunc(outcomes, byWorkload)
	if diff := cmp.Diff(outcomes, got); diff != "" {
		s.Errorf("told after %s (-want +got):\n%s", s.elapsed(), diff)
	}
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// told returns the outcomes since it was last called.
func (s *scene) told() []string {
	s.Helper()
	var told []string
	err := s.bus.History(s.Context(), bus.HistoryQuery{Kind: events.KindRollout}, func(stored events.Stored) error {
		outcome, err := stored.Outcome()
		if err == nil && stored.Seq > s.read {
			s.read = stored.Seq
			told = append(told, fmt.Sprintf("%s %s %s", nameOf(outcome.Workload), outcome.Verb, outcome.Reason))
		}
		return err
	})
	testkit.Must(s, err)
	return told
}

// wantNotices wants these Kubernetes Events to have been written since it was last called, in any order: "web Rolled".
func (s *scene) wantNotices(notices ...string) {
	s.Helper()
	s.cluster.mu.Lock()
	got := s.notices
	s.notices = nil
	s.cluster.mu.Unlock()
	s.wantAll("Kubernetes Events", notices, got)
}

// nameOf returns the name that a scene has for a workload: Deployments of its namespace go by their names.
func nameOf(w events.Workload) string {
	name := w.Name
	if w.Kind != "deployment" {
		name = w.String()
	}
	if w.Namespace != namespace {
		name = w.Namespace + "/" + name
	}
	return name
}

// elapsed returns how long the scene has been played.
func (s *scene) elapsed() time.Duration { return time.Since(midnight) }

// midnight is when the clock of a bubble begins.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
