package tests

import (
	"context"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// argoRollouts is the controller of Argo Rollouts that the tests share. The first test that needs it starts it.
var argoRollouts struct {
	sync.Mutex
	process *process.Process
}

// startArgoRollouts starts the controller of Argo Rollouts, with its kinds, unless it is running.
func startArgoRollouts(t *testing.T) {
	t.Helper()
	argoRollouts.Lock()
	defer argoRollouts.Unlock()
	if argoRollouts.process == nil || argoRollouts.process.Ended() {
		var err error
		if argoRollouts.process, err = plane.StartArgoRollouts(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	controller := argoRollouts.process
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", controller.Name(), controller.Tail())
		}
	})
}

// stopArgoRollouts kills the controller of Argo Rollouts.
func stopArgoRollouts() {
	argoRollouts.Lock()
	defer argoRollouts.Unlock()
	if argoRollouts.process != nil {
		argoRollouts.process.Kill()
	}
}
