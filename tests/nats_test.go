package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

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
		r.eventually("the "+program.Name()+" is alive and not ready", func(ctx context.Context) bool {
			alive, _, err := program.Get(ctx, "health", "/livez")
			ready, why, readyErr := program.Get(ctx, "health", "/readyz")
			return err == nil && readyErr == nil && alive == http.StatusOK && ready == http.StatusServiceUnavailable &&
				strings.Contains(why, "[-]nats: ")
		})
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
