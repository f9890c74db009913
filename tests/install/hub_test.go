package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
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
	testkit.Must(t, err)
	h := &hub{T: t, NATSHub: written}
	testkit.Must(t, errors.Join(h.Render(t.Context(), "", clusters...), h.Prepare(t.Context(), t.TempDir())))
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
	testkit.Must(h, testbed.LaunchNATS(h.Context(), h.Servers...))
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
	ctx, stop := running.WithTimeout(h.Context(), testkit.Patience)
	defer stop()
	connection, err := bus.Connect(ctx, bus.ConnectOptions{
		URL: h.URL(), CredsFile: h.Seed(account + "-operator"), CAFile: h.Certificates.CA, Name: "test", Cluster: account,
	})
	testkit.Must(h, err)
	defer connection.Close()
	js, err := jetstream.New(connection)
	testkit.Must(h, err)
	testkit.Await(h.T, "the streams of "+account+" are declared", func(ctx context.Context) bool {
		err = h.Declare(ctx, js, files...)
		return err == nil
	}, func() string { return fmt.Sprint(err) })
}

// declareFleet makes FLEET, and what is before it.
func (h *hub) declareFleet() {
	h.Helper()
	files, err := h.FleetStreams()
	testkit.Must(h, err)
	h.declare("fleet", files...)
}

// ask runs a command that reads FLEET, and returns the lines after the heading.
func (h *hub) ask(ctx context.Context, command ...string) ([]string, error) {
	args := append(command, "--output=wide", "--cluster=hub", "--stream=FLEET", "--kubeconfig="+plane.Kubeconfig(),
		"--nats-url="+h.URL(), "--nats-ca="+h.Certificates.CA, "--nats-creds="+h.Seed("fleet-reader"))
	program := exec.CommandContext(ctx, binaries.Keyturn, args...)
	program.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	out, err := program.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("keyturn %s: %w\n%s", strings.Join(command, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[1:], nil
}

// tells waits until FLEET has events in a namespace, each given as cluster, object and verb. It returns all events that it found.
func (h *hub) tells(namespace string, want ...string) []string {
	h.Helper()
	var got []string
	var last error // While the servers elect the leader of a stream, a request may have no answer.
	testkit.Await(h.T, "FLEET tells of "+strings.Join(want, ", "), func(ctx context.Context) bool {
		var lines []string
		lines, last = h.ask(ctx, "history", "--all-clusters", "--namespace="+namespace)
		got = nil
		for _, line := range lines {
			if fields := strings.Fields(line); len(fields) >= 5 && fields[2] == namespace {
				got = append(got, strings.Join([]string{fields[1], fields[3], fields[4]}, " "))
			}
		}
		return !slices.ContainsFunc(want, func(event string) bool { return !slices.Contains(got, event) })
	}, func() string { return fmt.Sprintf("it tells of %q, %v", got, last) })
	return got
}
