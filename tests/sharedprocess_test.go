package tests

import (
	"context"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// sharedProcess is a controller that the tests share. The first test that needs it starts it.
type sharedProcess struct {
	mu      sync.Mutex
	process *process.Process
}

// operator is External Secrets, and argoRollouts the controller of Argo Rollouts.
var operator, argoRollouts sharedProcess

// startOperator starts External Secrets unless it is running.
func startOperator(t *testing.T) {
	t.Helper()
	operator.start(t, func(ctx context.Context) (*process.Process, error) { return plane.StartExternalSecrets(ctx, 1) })
}

// startArgoRollouts starts the controller of Argo Rollouts, with its kinds, unless it is running.
func startArgoRollouts(t *testing.T) {
	t.Helper()
	argoRollouts.start(t, plane.StartArgoRollouts)
}

func (s *sharedProcess) start(t *testing.T, start func(context.Context) (*process.Process, error)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.Ended() {
		var err error
		if s.process, err = start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	controller := s.process
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", controller.Name(), controller.Tail())
		}
	})
}

// kill kills it if it was started.
func (s *sharedProcess) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Kill()
	}
}
