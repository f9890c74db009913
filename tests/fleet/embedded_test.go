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
	clusters := startAll(t, 12, func(name string) programs.Options {
		dir := t.TempDir()
		testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
		return programs.Options{
			Env: []string{
				"NATS_WATCHER_KEY=" + testkit.NewNATSUser(t, dir, "watcher"), "NATS_ACTUATOR_KEY=" + testkit.NewNATSUser(t, dir, "actuator"),
				"NATS_READER_KEY=" + testkit.NewNATSUser(t, dir, "reader"), "NATS_PROJECTOR_CONSUMERS=" + testkit.ProjectorConsumers(t, "../../deploy", name),
				"NATS_TLS_CERT=" + filepath.Join(dir, "tls.crt"), "NATS_TLS_KEY=" + filepath.Join(dir, "tls.key"),
			},
			WatcherArgs:  []string{"--nats-creds", filepath.Join(dir, "watcher.nk"), "--nats-ca", filepath.Join(dir, "ca.crt")},
			ActuatorArgs: []string{"--nats-creds", filepath.Join(dir, "actuator.nk"), "--nats-config", "../../deploy/programs/nats.conf"},
		}
	})
	t.Run("an actuator is killed, and its NATS with it, in the middle of publishing", func(t *testing.T) {
		c := clusters["eu"].with(t)
		c.recorded(c.crowd...)
		before := c.generations()
		c.rotateCrowd(c.actuator.Kill)
		c.startActuator()
		c.rolls(before, c.crowd...)
	})
	t.Run("a watcher is killed in the middle of publishing", func(t *testing.T) {
		c := clusters["us"].with(t)
		before := c.generations()
		c.rotateCrowd(c.watcher.Kill)
		c.startWatcher()
		c.rolls(before, c.crowd...)
	})
}
