package fleet

import (
	"path/filepath"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestClustersOnTheirOwn(t *testing.T) {
	t.Parallel()
	clusters := startAll(t, func(name string) programs.Options {
		dir := t.TempDir()
		return programs.Options{
			Env: []string{
				"NATS_WATCHER_KEY=" + testkit.NewNATSUser(t, dir, "watcher"), "NATS_ACTUATOR_KEY=" + testkit.NewNATSUser(t, dir, "actuator"),
				"NATS_READER_KEY=" + testkit.NewNATSUser(t, dir, "reader"), "NATS_ACTUATOR_CONSUMERS=" + testkit.ActuatorConsumers(t, "../../deploy", name),
			},
			WatcherArgs:  []string{"--nats-creds", filepath.Join(dir, "watcher.nk")},
			ActuatorArgs: []string{"--nats-creds", filepath.Join(dir, "actuator.nk"), "--nats-config", "../../deploy/programs/nats.conf"},
		}
	})
	accept(t, clusters)
}
