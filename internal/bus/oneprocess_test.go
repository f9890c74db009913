package bus

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/tests/testkit"
)

// In one process with the server, both programs are one user without limits. People reach the server with the key of the reader, and write nothing.
func TestPeopleReadTheStreamsOfAProcessAndWriteNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Options{
		Listen: "127.0.0.1:-1", StoreDir: testkit.StoreDir(t), Reader: testkit.NewNATSUser(t, dir, "reader"),
	}, nil)
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	own, err := Connect(t.Context(), ConnectOptions{Cluster: testCluster, Role: "watcher"}, s.ClientOption())
	testkit.Must(t, err)
	t.Cleanup(own.Close)
	testkit.Must(t, declareWith(t.Context(), own))
	programs, err := Open(t.Context(), own, testCluster, nil)
	testkit.Must(t, err)
	mustPublish(t, programs, version("db", "1"), 0)

	var log testkit.Log
	nc, err := Connect(t.Context(), ConnectOptions{
		URL: s.ClientURL(), Cluster: testCluster, Role: "actuator", CredsFile: filepath.Join(dir, "reader.nk"), Logger: log.Logger(),
	})
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	reader, err := Open(t.Context(), nc, testCluster, nil)
	testkit.Must(t, err)
	if usage, err := reader.Usage(t.Context()); err != nil || usage[0].Messages != 1 {
		t.Errorf("CHANGES: got %+v, %v, want the one event", usage, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := reader.PublishChange(ctx, version("db", "2"), 2); err == nil {
		t.Error("it publishes a change")
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(200*time.Millisecond))
	testkit.Must(t, err)
	if err := js.DeleteStream(t.Context(), "CHANGES"); err == nil {
		t.Error("it deletes a stream")
	}

	for _, tt := range []struct {
		name    string
		options []nats.Option
	}{
		{"nobody", nil},
		{"somebody with another key", []nats.Option{nkeyOf(t)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := nats.Connect(s.ClientURL(), append(tt.options, nats.Timeout(testkit.Patience))...)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), "authorization") {
				t.Errorf("got %v, want that it is refused", err)
			}
		})
	}
}

// nkeyOf returns the option for a user that the server does not know.
func nkeyOf(t *testing.T) nats.Option {
	t.Helper()
	dir := t.TempDir()
	testkit.NewNATSUser(t, dir, "other")
	option, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "other.nk"))
	testkit.Must(t, err)
	return option
}
