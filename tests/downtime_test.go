package tests

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// fleet creates Deployments without pods. Each reads the Secret that secretOf names; one more reads a Secret that never
// changes.
func (r *rig) fleet(size int, secretOf func(i int) string) {
	r.Helper()
	made := map[string]bool{}
	create := func(name, secret string) {
		if !made[secret] {
			r.secret(secret, map[string]string{"password": "before"})
			made[secret] = true
		}
		deployment := programs.NewDeployment(r.namespace, name, 0, map[string]string{"keyturn.dev/roll-on": "auto"})
		programs.ReadSecret(&deployment.Spec.Template, secret)
		if _, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), deployment, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	create("bystander", "untouched")
	for i := range size {
		create("app-"+strconv.Itoa(i), secretOf(i))
	}
}

func ownSecret(i int) string { return "secret-" + strconv.Itoa(i) }

func oneSecret(int) string { return "shared" }

// generations returns how often the pod template of each Deployment in the namespace was written, its creation included.
func (r *rig) generations() map[string]int64 {
	r.Helper()
	return r.tally().deployments()
}

// awaitRolled waits until every Deployment of a fleet has rolled, and returns what their generations are if each has once and the bystander has not.
func (r *rig) awaitRolled(before map[string]int64) (want map[string]int64) {
	r.Helper()
	want = maps.Clone(before)
	for name := range want {
		if name != "bystander" {
			want[name]++
		}
	}
	r.eventually("every Deployment of the fleet is rolled", func(context.Context) bool {
		now := r.seen().deployments()
		for name, generation := range want {
			if now[name] < generation {
				return false
			}
		}
		return true
	})
	return want
}

// eachRolledOnce waits until every Deployment of a fleet has rolled and no event is pending, and checks that each rolled once and the
// bystander did not.
func (r *rig) eachRolledOnce(before map[string]int64) {
	r.Helper()
	want := r.awaitRolled(before)
	r.quiet()
	if now := r.generations(); !maps.Equal(now, want) {
		for name, generation := range now {
			if generation != want[name] {
				r.Errorf("generation of %s: got %d, want %d", name, generation, want[name])
			}
		}
	}
}

// eachToldOnce waits until the end of each Deployment's rollout is published, and checks that each start and each end was
// published once.
func (r *rig) eachToldOnce(fleet map[string]int64) {
	r.Helper()
	type said struct {
		name string
		verb events.Verb
	}
	var told map[said]int
	r.eventually("the end of each rollout is published", func(context.Context) bool {
		told = make(map[said]int)
		ends := 0
		for _, outcome := range r.outcomes() {
			if outcome.Verb == events.VerbHeld {
				continue // That it waits is told for each content.
			}
			one := said{outcome.Workload.Name, outcome.Verb}
			told[one]++
			if outcome.Verb == events.VerbCompleted && told[one] == 1 {
				ends++
			}
		}
		return ends >= len(fleet)-1 // all but the bystander
	})
	for one, times := range told {
		if times > 1 {
			r.Errorf("the outcome %[2]s of %[1]s is published %[3]d times, want once", one.name, one.verb, times)
		}
		if one.verb == events.VerbCompleted && told[said{one.name, events.VerbStarted}] != 1 {
			r.Errorf("the start of the rollout of %s is published %d times, want once", one.name, told[said{one.name, events.VerbStarted}])
		}
	}
}

// connect connects to the bus of the test's programs.
func (r *rig) connect() *bus.Bus {
	r.Helper()
	ctx, stop := running.WithTimeout(r.Context(), patience)
	defer stop()
	connection, err := bus.Connect(ctx, bus.ConnectOptions{
		URL: r.programs.NATSURL(), CAFile: r.programs.NATSCA(), Cluster: r.programs.Cluster(), Name: "test",
	})
	testkit.Must(r, err)
	r.Cleanup(connection.Close)
	var b *bus.Bus
	natstest.Publish(r.T, func() (err error) {
		b, err = bus.Open(r.Context(), connection, r.programs.Cluster(), nil)
		return err
	})
	return b
}

// stillFor is how long nothing may be published until nothing more is expected. It is longer than the actuators of tests collect changes and outcomes.
const stillFor = 3 * time.Second

// quiet waits until nothing has been published for a while. No stream tells what the actuator is done with, because it acks nothing.
func (r *rig) quiet() {
	r.Helper()
	js := r.jetstream()
	last, since := uint64(0), time.Now()
	r.eventually("nothing is published any more", func(ctx context.Context) bool {
		now := uint64(0)
		for _, name := range []string{events.StreamChanges, events.StreamHistory, events.StreamDeadLetters} {
			stream, err := js.Stream(ctx, name)
			if err != nil {
				return false
			}
			now += stream.CachedInfo().State.LastSeq
		}
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= stillFor
	})
}

// startOutsideNATS starts a NATS server with the streams, which the test can stop and start again on the same port and store.
func startOutsideNATS(t *testing.T) *natstest.Server {
	t.Helper()
	port, err := process.FreePort()
	testkit.Must(t, err)
	n := natstest.Start(t, natstest.Options{Port: port})
	n.Declare()
	return n
}

func (r *rig) rotate(size int, secretOf func(int) string) {
	r.Helper()
	done := map[string]bool{}
	for i := range size {
		if name := secretOf(i); !done[name] {
			done[name] = true
			r.secret(name, map[string]string{"password": "after"})
		}
	}
}

func TestChangesMadeWhileAPartIsDownAreFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// outside means that NATS is a separate server, not the one embedded in the actuator.
		outside    bool
		stop       func(*rig, *natstest.Server)
		startAgain func(*rig, *natstest.Server)
		// told means that the restarted actuator must also publish the end of each rollout, once.
		told bool
	}{
		{
			name:       "ChangesMadeWhileTheWatcherIsDownAreFound",
			stop:       func(r *rig, _ *natstest.Server) { r.stop(r.watcher) },
			startAgain: func(r *rig, _ *natstest.Server) { r.startWatcher() },
		},
		{
			name:       "ChangesMadeWhileTheActuatorIsDownAreFound",
			outside:    true,
			stop:       func(r *rig, _ *natstest.Server) { r.stop(r.actuator) },
			startAgain: func(r *rig, _ *natstest.Server) { r.startActuator() },
			told:       true,
		},
		{
			name:       "ChangesMadeWhileNATSIsDownAreFound",
			outside:    true,
			stop:       func(_ *rig, n *natstest.Server) { n.Stop() },
			startAgain: func(_ *rig, n *natstest.Server) { n.Start() },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := programs.Options{ActuatorArgs: []string{"--settle", "50ms"}}
			var n *natstest.Server
			if tt.outside {
				n = startOutsideNATS(t)
				options.NATSURL = n.URL()
			}
			r := newRig(t, options)
			const size = 50
			r.fleet(size, ownSecret)
			r.start()
			r.awaitRecords()
			before := r.generations()
			tt.stop(r, n)
			r.rotate(size, ownSecret)
			tt.startAgain(r, n)
			r.eachRolledOnce(before)
			if tt.told {
				r.eachToldOnce(before)
			}
		})
	}
}

// stop stops a program as its pod is stopped.
func (r *rig) stop(program *programs.Program) {
	r.Helper()
	if err := program.Stop(20 * time.Second); err != nil {
		r.Fatalf("stopping the %s: %v", program.Name(), err)
	}
}

func TestAnActuatorThatIsKilledInTheMiddleOfAFanOutRollsTheRestOnce(t *testing.T) {
	t.Parallel()
	size := fanOutSize()
	answered := int64(size) / 2
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.fleet(size, oneSecret)
	r.startActuator("--kubeconfig", r.stallingAfter(answered))
	r.startWatcher()
	r.awaitRecords()
	before := r.generations()
	r.rotate(size, oneSecret)
	r.killInTheMiddle(r.actuator, before, answered)
	r.startActuator()
	r.eachRolledOnce(before)
	r.eachToldOnce(before)
}

// fanOutSize is how many Deployments one change rolls in the middle of which an actuator is killed.
func fanOutSize() int {
	if testkit.IsNightly() {
		return 500
	}
	return 100
}

// killInTheMiddle kills a program of [rig.stallingAfter] when more of a fleet are rolled than it has answers for.
func (r *rig) killInTheMiddle(program *programs.Program, before map[string]int64, answered int64) {
	r.Helper()
	rolled := int64(0)
	r.eventually("one is rolled whose patch has no answer", func(context.Context) bool {
		rolled = 0
		for name, generation := range r.seen().deployments() {
			if generation > before[name] {
				rolled++
			}
		}
		return rolled > answered
	})
	program.Kill()
	all := int64(len(before)) - 1 // all but the bystander
	if rolled >= all {
		r.Fatalf("all %d had rolled before the kill, which must happen in between", rolled)
	}
	r.Logf("killed after %d of %d, of which %d had an answer", rolled, all, answered)
}
