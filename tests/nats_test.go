package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// lacksNATS waits until a program is alive and, for lack of NATS, not ready.
func (r *rig) lacksNATS(program *programs.Program) {
	r.Helper()
	r.eventually("the "+program.Name()+" is alive and not ready", func(ctx context.Context) bool {
		alive, _, err := program.Get(ctx, "health", "/livez")
		ready, why, readyErr := program.Get(ctx, "health", "/readyz")
		return err == nil && readyErr == nil && alive == http.StatusOK && ready == http.StatusServiceUnavailable && strings.Contains(why, "[-]nats: ")
	})
}

func TestTheProgramsWaitForANATSThatIsUnreachable(t *testing.T) {
	t.Parallel()
	n := startOutsideNATS(t)
	n.Stop()
	r := newRig(t, programs.Options{NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.launchActuator()
	r.launchWatcher()
	for _, program := range []*programs.Program{r.actuator, r.watcher} {
		r.eventually("the "+program.Name()+" says what it waits for", func(context.Context) bool {
			return strings.Contains(program.Output(), `"nats unreachable","url":"`+n.URL()+`"`)
		})
		r.lacksNATS(program)
	}
	before := r.generations()
	n.Start()
	r.actuator.AwaitReady(r.T, patience)
	r.watcher.AwaitReady(r.T, patience)
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	if got, want := r.generations()["web"], before["web"]+1; got != want {
		t.Errorf("generation of web: got %d, want %d", got, want)
	}
}

// startNATS starts the NATS beside the actuator, as a kubelet does first, and again when that container alone has ended.
func (r *rig) startNATS() *programs.Program {
	r.Helper()
	n, err := r.programs.StartNATS()
	testkit.Must(r, err)
	r.own(n)
	return n
}

func TestTheActuatorGoesOnAfterTheNATSBesideItWasKilled(t *testing.T) {
	t.Parallel()
	const size = 20
	r := newRig(t, programs.Options{Beside: true, ActuatorArgs: []string{"--settle", "50ms"}})
	r.fleet(size, ownSecret)
	n := r.startNATS()
	r.start()
	r.awaitRecords()
	before := r.generations()
	n.Kill()
	for _, program := range []*programs.Program{r.actuator, r.watcher} {
		r.lacksNATS(program)
	}
	r.rotate(size, ownSecret)
	r.startNATS().AwaitReady(t, patience)
	r.actuator.AwaitReady(t, patience)
	r.watcher.AwaitReady(t, patience)
	r.eachRolledOnce(before)
	r.eachToldOnce(before)
	for _, program := range []*programs.Program{r.actuator, r.watcher} {
		if program.Ended() {
			t.Errorf("the %s has ended with a NATS that is another process", program.Name())
		}
	}
}
