package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// hub is the NATS of an operator of many clusters.
type hub struct {
	*testing.T
	*testbed.NATSHub
}

// newHub prepares a hub for clusters, each as render.sh takes it. It is away until it is started.
func newHub(t *testing.T, clusters ...string) *hub {
	t.Helper()
	written, err := testbed.NewNATSHub("../../deploy/nats", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{T: t, NATSHub: written}
	if err := errors.Join(h.Render(t.Context(), "", clusters...), h.Prepare(t.Context(), t.TempDir())); err != nil {
		t.Fatal(err)
	}
	for _, server := range h.Servers {
		t.Cleanup(func() {
			server.Stop()
			if process := server.Process(); t.Failed() && process != nil {
				t.Logf("log of %s:\n%s", process.Name(), process.Output())
			}
		})
	}
	return h
}

// start starts the servers, and waits until the leaf node of a cluster has found them.
func (h *hub) start(cluster string) {
	h.Helper()
	if err := testbed.LaunchNATS(h.Context(), h.Servers...); err != nil {
		h.Fatal(err)
	}
	testkit.Await(h.T, "the leaf node of "+cluster+" is connected", func(ctx context.Context) bool {
		return slices.ContainsFunc(h.Servers, func(server *testbed.NATSServer) bool {
			accounts, err := server.LeafAccounts(ctx)
			return err == nil && slices.Contains(accounts, cluster)
		})
	})
}

// declare makes streams of an account, as its operator does.
func (h *hub) declare(account string, files ...string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	connection, err := events.Connect(ctx, events.ConnectOptions{
		URL: h.URL(), CredsFile: h.Seed(account + "-operator"), CAFile: h.Certificates.CA, Name: "test", Cluster: account,
	})
	if err != nil {
		h.Fatal(err)
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		h.Fatal(err)
	}
	if err := h.Declare(ctx, js, files...); err != nil {
		h.Fatal(err)
	}
}

// declareFleet makes FLEET, and what is before it.
func (h *hub) declareFleet() {
	h.Helper()
	files, err := h.FleetStreams()
	if err != nil {
		h.Fatal(err)
	}
	h.declare("fleet", files...)
}

// ask runs a command of the actuator that reads FLEET, and returns the lines after the heading.
func (h *hub) ask(command ...string) []string {
	h.Helper()
	args := append(command, "--cluster=hub", "--stream=FLEET",
		"--nats-url="+h.URL(), "--nats-ca="+h.Certificates.CA, "--nats-creds="+h.Seed("fleet-reader"))
	program := exec.CommandContext(h.Context(), binaries.Actuator, args...)
	program.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	out, err := program.CombinedOutput()
	if err != nil {
		h.Fatalf("actuator %s: %v\n%s", strings.Join(command, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[1:]
}

// tells waits until FLEET has events in a namespace, each given as cluster, object and verb. It returns all events that it found.
func (h *hub) tells(namespace string, want ...string) []string {
	h.Helper()
	var got []string
	testkit.Await(h.T, "FLEET tells of "+strings.Join(want, ", "), func(context.Context) bool {
		got = nil
		for _, line := range h.ask("history", "--all-clusters", "--namespace="+namespace) {
			if fields := strings.Fields(line); len(fields) >= 5 && fields[2] == namespace {
				got = append(got, strings.Join([]string{fields[1], fields[3], fields[4]}, " "))
			}
		}
		return !slices.ContainsFunc(want, func(event string) bool { return !slices.Contains(got, event) })
	})
	return got
}
