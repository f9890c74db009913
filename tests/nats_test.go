package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
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
	r.awaitReady(r.actuator)
	r.awaitReady(r.watcher)
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	if got, want := r.generations()["web"], before["web"]+1; got != want {
		t.Errorf("generation of web: got %d, want %d", got, want)
	}
}

func TestTheProgramsRefuseANATSThatIsNotConfiguredForThem(t *testing.T) {
	t.Parallel()
	declare := func(alter func(*jetstream.StreamConfig)) func(*testing.T, jetstream.JetStream) {
		return func(t *testing.T, js jetstream.JetStream) {
			for _, config := range events.Streams(1) {
				alter(&config)
				if _, err := js.CreateStream(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name    string
		declare func(*testing.T, jetstream.JetStream)
		want    []string
	}{
		{
			"the streams are missing", func(*testing.T, jetstream.JetStream) {},
			[]string{"CHANGES does not exist", "HISTORY does not exist", "DEADLETTERS does not exist"},
		},
		{
			"a stream keeps every message of a subject", declare(func(c *jetstream.StreamConfig) {
				if c.Name == events.StreamChanges {
					c.MaxMsgsPerSubject = -1
				}
			}),
			[]string{"CHANGES: max_msgs_per_subject is -1, want 1"},
		},
		{
			"two fields of two streams are wrong", declare(func(c *jetstream.StreamConfig) {
				switch c.Name {
				case events.StreamChanges:
					c.AllowDirect = false
				case events.StreamHistory:
					c.Storage = jetstream.MemoryStorage
				}
			}),
			[]string{"CHANGES: allow_direct is false, want true", "HISTORY: storage is Memory, want File"},
		},
		{
			"a stream is of another cluster", declare(func(c *jetstream.StreamConfig) {
				c.Subjects = []string{strings.Replace(c.Subjects[0], ">", "other.>", 1)}
			}),
			[]string{"CHANGES: subjects", "HISTORY: subjects", "DEADLETTERS: subjects"},
		},
	}
	r := newRig(t, programs.Options{})
	common := []string{"--cluster", "demo", "--kubeconfig", plane.Kubeconfig(), "--metrics-addr=", "--health-addr=", "--log-level", "error"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := natstest.Start(t, natstest.Options{})
			n.JetStream(func(js jetstream.JetStream) { tt.declare(t, js) })
			args := append([]string{"--nats-url", n.URL()}, common...)
			command{binary: r.programs.ActuatorBinary(), args: args}.run(t).refused(t, tt.want...)
			args = append(args, "--fingerprint-key-file", r.programs.KeyFile())
			command{binary: r.programs.WatcherBinary(), args: args}.run(t).refused(t, tt.want...)
		})
	}
}
