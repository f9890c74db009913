package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// Releases before had all users in one account. Its streams and consumers are there for the actuator, and for the others, after an upgrade and after the
// way back.
func TestAccountsForUsersLoseNoStream(t *testing.T) {
	g := newGuarded(t)
	store := testkit.StoreDir(t)
	before := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(before, []byte(`tls: { cert_file: $NATS_TLS_CERT, key_file: $NATS_TLS_KEY }
authorization: { users: [{ nkey: $NATS_WATCHER_KEY }, { nkey: $NATS_ACTUATOR_KEY }, { nkey: $NATS_READER_KEY }] }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const accounts = "../../../deploy/programs/nats.conf"
	stop := g.start(before, store)
	g.declare()
	version, created := uint64(0), map[string]string{}
	for i, config := range []string{before, accounts, before, accounts} {
		if i > 0 {
			stop()
			stop = g.start(config, store)
		}
		change := numbered(i)
		change.Cluster = "prod"
		change.Source.Name = "db"
		g.works("watcher", func(b *events.Bus) error {
			before := version
			natstest.Publish(t, func() (err error) {
				version, err = b.PublishChange(t.Context(), change, before)
				return err
			})
			return nil
		})
		g.works("reader", func(b *events.Bus) error {
			var last events.Stored
			err := natstest.Answered(t, func() (err error) {
				last, err = b.Last(t.Context(), events.Subject("prod", change.Source))
				return err
			})
			if err == nil && last.Seq != version {
				t.Errorf("the reader sees the change %d, want %d", last.Seq, version)
			}
			return err
		})
		g.works("actuator", func(b *events.Bus) error {
			// The server counts for a consumer what is stored, but later.
			testkit.Await(t, "the actuator has one change before it", func(ctx context.Context) bool {
				lag, err := b.Lag(ctx, "actuator-prod")
				return err == nil && lag.Pending == 1
			})
			return nil
		})
		now := g.created()
		if i == 0 {
			created = now
		}
		if diff := cmp.Diff(created, now); diff != "" {
			t.Errorf("with %s streams are others (-before +after):\n%s", config, diff)
		}
	}
	stop()
}

// created returns when each stream was created.
func (g *guarded) created() map[string]string {
	g.Helper()
	js := g.declare()
	created := make(map[string]string)
	for _, name := range []string{events.StreamChanges, events.StreamHistory, events.StreamDeadLetters} {
		stream, err := js.Stream(g.Context(), name)
		if err != nil {
			g.Fatal(err)
		}
		created[name] = stream.CachedInfo().Created.String()
	}
	return created
}
