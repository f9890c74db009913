package fleet

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestClustersOnTheirOwn(t *testing.T) {
	t.Parallel()
	clusters := startAll(t, func(name string) programs.Options {
		dir := t.TempDir()
		testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
		return programs.Options{
			Env: []string{
				"NATS_WATCHER_KEY=" + testkit.NewNATSUser(t, dir, "watcher"), "NATS_ACTUATOR_KEY=" + testkit.NewNATSUser(t, dir, "actuator"),
				"NATS_READER_KEY=" + testkit.NewNATSUser(t, dir, "reader"), "NATS_ACTUATOR_CONSUMERS=" + testkit.ActuatorConsumers(t, "../../deploy", name),
				"NATS_TLS_CERT=" + filepath.Join(dir, "tls.crt"), "NATS_TLS_KEY=" + filepath.Join(dir, "tls.key"),
			},
			WatcherArgs:  []string{"--nats-creds", filepath.Join(dir, "watcher.nk"), "--nats-ca", filepath.Join(dir, "ca.crt")},
			ActuatorArgs: []string{"--nats-creds", filepath.Join(dir, "actuator.nk"), "--nats-config", "../../deploy/programs/nats.conf"},
		}
	})
	accept(t, clusters)
}
