package testbed

import (
	"errors"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// Revive restarts the controllers and the node if they have ended, like a kubelet, and returns the names of those that it has restarted. It does
// not wait until they are ready. They end if the API server is down when they start.
func (cp *ControlPlane) Revive() ([]string, error) {
	cp.reviving.Lock()
	defer cp.reviving.Unlock()
	var revived []string
	var failed error
	for _, server := range []struct {
		name  string
		start func() (ready, error)
	}{{build.ControllerManager, cp.startControllers}, {build.Node, cp.startNode}} {
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
