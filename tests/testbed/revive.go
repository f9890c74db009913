package testbed

import (
	"errors"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// Revive restarts the controller manager, the scheduler and kwok if they have ended, like a kubelet, and returns the names of those that it
// has restarted. It does not wait until they are ready. A scheduler exits if it finds its cache inconsistent, which may happen after the API
// server or etcd was killed.
func (cp *ControlPlane) Revive() ([]string, error) {
	cp.reviving.Lock()
	defer cp.reviving.Unlock()
	var revived []string
	var failed error
	for _, server := range []struct {
		name  string
		start func() (ready, error)
	}{{build.ControllerManager, cp.startControllers}, {build.Scheduler, cp.startScheduler}, {build.Kwok, cp.startKwok}} {
		if p := cp.Server(server.name); p == nil || !p.Ended() {
			continue
		}
		if _, err := server.start(); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		revived = append(revived, server.name)
	}
	return revived, failed
}
