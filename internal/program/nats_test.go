package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// serverBeside starts the server as in the container beside the actuator, whose user and CA are in dir, and returns its address.
func serverBeside(t *testing.T, dir string) (url string, log *testkit.Log) {
	t.Helper()
	log = &testkit.Log{}
	testkit.SetNATSVariables(t, dir, "watcher", "actuator", "reader")
	n := NewNATS("test")
	n.Process.MetricsAddr, n.Process.HealthAddr = "127.0.0.1:0", "127.0.0.1:0"
	n.Server.StoreDir, n.Server.ConfigFile = testkit.StoreDir(t), "../../deploy/programs/nats.conf"
	n.StorageKeyFile = filepath.Join(dir, "storage.key")
	testkit.Must(t, os.WriteFile(n.StorageKeyFile, []byte(strings.Repeat("k", 44)), 0o600))
	testkit.Run(t, "nats", func(ctx context.Context) error {
		if err := n.Run(ctx, log, Build{}); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	log.AwaitReady(t)
	return n.running.Load().ClientURL(), log
}

func TestTheActuatorDeclaresAndRepairsTheStreamsOfTheServerBesideIt(t *testing.T) {
	dir := t.TempDir()
	url, served := serverBeside(t, dir)
	a := NewActuator("test")
	a.Process.NATS.URL, a.Replicas = url, 1
	a.Process.NATS.CAFile, a.Process.NATS.CredsFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "actuator.nk")
	var log testkit.Log
	js := connected(t, a, &log)
	if _, err := js.UpdateStream(t.Context(), historyWithLimit()); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the limit is the declared one again", func(ctx context.Context) bool {
		stream, err := js.Stream(ctx, events.StreamHistory)
		return err == nil && stream.CachedInfo().Config.MaxMsgsPerSubject > 1
	}, log.String)
	if a.unfit() != nil {
		t.Errorf("with one server it may not lead: %v", a.unfit())
	}
	if strings.Contains(served.String(), "is not encrypted") {
		t.Errorf("the streams are not encrypted:\n%s", served)
	}
}

func TestAnActuatorHasItsServerInTheProcessOrBesideIt(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		replicas  int
		valid     bool
	}{
		{"in the process", "/data", 0, true},
		{"beside it", "", 1, true},
		{"beside each of three", "", 3, true},
		{"beside each of five", "", 5, true},
		{"beside each of two, whose loss of one is that of the majority", "", 2, false},
		{"beside each of four", "", 4, false},
		{"beside each of more than a stream has copies", "", 7, false},
		{"of an operator", "", 0, true},
		{"both", "/data", 1, false},
		{"fewer than none", "", -1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewActuator("test")
			a.Embedded.StoreDir, a.Replicas = tt.dir, tt.replicas
			if err := a.validateNATS(); (err == nil) != tt.valid {
				t.Errorf("got %v, want it valid: %t", err, tt.valid)
			}
		})
	}
}
