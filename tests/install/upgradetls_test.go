package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The order in which an upgrade replaces the two pods is not known, and one that has TLS and one that has not cannot talk.
func TestAnUpgradeToTLSLosesNoChangeAndRollsNothingTwice(t *testing.T) {
	t.Run("the actuator first", func(t *testing.T) {
		t.Parallel()
		u := newTLSUpgrade(t)
		u.stop(u.actuator)
		u.ready(u.StartActuator("--nats-config", u.config))
		u.cannotConnect(u.watcher, "certificate signed by unknown authority")
		u.await(u.written, upgraded/2)
		u.stop(u.watcher)
		u.ready(u.StartWatcher("--nats-ca", u.ca))
		u.await(u.written, upgraded)
		u.eachRollsOnce()
	})
	t.Run("the watcher first", func(t *testing.T) {
		t.Parallel()
		u := newTLSUpgrade(t)
		u.stop(u.watcher)
		watcher, err := u.StartWatcher("--nats-ca", u.ca)
		if err == nil {
			watcher.StopAfter(t)
			u.cannotConnect(watcher, "secure connection not available")
		}
		u.await(u.written, upgraded/2)
		u.stop(u.actuator)
		u.ready(u.StartActuator("--nats-config", u.config))
		u.ready(watcher, err)
		u.await(u.written, upgraded)
		u.eachRollsOnce()
	})
}

// tlsUpgrade is an installation without TLS, of which a quarter of the Secrets has changed, and what it needs for TLS.
type tlsUpgrade struct {
	*upgrade
	*programs.Programs
	watcher, actuator *programs.Program
	written           <-chan struct{}
	config, ca        string
}

func newTLSUpgrade(t *testing.T) *tlsUpgrade {
	t.Helper()
	files, err := testbed.NewCertificates(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u := &tlsUpgrade{upgrade: newUpgrade(t), config: filepath.Join(t.TempDir(), "nats.conf"), ca: files.CA}
	block := fmt.Sprintf("tls: { cert_file: %q, key_file: %q }\n", files.Cert, files.Key)
	if err := os.WriteFile(u.config, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	u.Programs, err = programs.New(t.Context(), plane, programs.Options{
		Dir: t.TempDir(), RBAC: "../../deploy/base/rbac.yaml", Binaries: binaries, Env: []string{"GORACE=atexit_sleep_ms=0"},
		WatcherArgs: []string{"--namespaces", u.namespace}, ActuatorArgs: []string{"--namespaces", u.namespace, "--settle", "50ms", "--leader-elect=false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	u.actuator = u.ready(u.StartActuator())
	u.watcher = u.ready(u.StartWatcher())
	u.written = u.change(t.Context())
	u.await(u.written, upgraded/4)
	return u
}

// cannotConnect waits until a program says why it does not reach NATS.
func (u *tlsUpgrade) cannotConnect(program *programs.Program, why string) {
	u.Helper()
	testkit.Await(u.T, fmt.Sprintf("the %s says %q", program.Name(), why), func(context.Context) bool { return strings.Contains(program.Output(), why) })
}
