package testbed

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startEtcd starts an etcd with one member that never waits for the disk, because temporary data need not survive a power
// failure. The short election timeout saves most of a second, in which the only candidate would wait for others.
func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	url := cp.etcdURL()
	p, err := cp.launch(build.Etcd,
		"--data-dir="+filepath.Join(cp.dir, "etcd"),
		"--listen-client-urls="+url,
		"--advertise-client-urls="+url,
		"--listen-peer-urls=http://"+process.Address(0),
		"--heartbeat-interval=20",
		"--election-timeout=200",
		"--quota-backend-bytes=8589934592",
		"--unsafe-no-fsync",
		"--log-level=warn")
	if err != nil {
		return err
	}
	return cp.healthy(ctx, p, url+"/readyz")
}

func (cp *ControlPlane) etcdURL() string { return "http://" + process.Address(cp.ports.etcd) }

// KillEtcd ends etcd like a crash, and waits until it is gone. It does nothing if etcd is already down. The API server keeps
// running, but does not answer requests that need etcd.
func (cp *ControlPlane) KillEtcd() { cp.kill(build.Etcd) }

// StartEtcd starts etcd again after [ControlPlane.KillEtcd], on the same port and with the same data, and waits until it is ready. It
// still has everything that it has acknowledged, and its revisions continue. The API server connects to it again within seconds.
func (cp *ControlPlane) StartEtcd(ctx context.Context) error {
	if err := cp.startEtcd(ctx); err != nil {
		return fmt.Errorf("start etcd again: %w", err)
	}
	return nil
}
