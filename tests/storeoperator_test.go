package tests

import (
	"context"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// operator is the External Secrets Operator that the tests share. The first test that needs it starts it.
var operator struct {
	sync.Mutex
	process *process.Process
}

// startOperator starts External Secrets unless it is running.
func startOperator(t *testing.T) {
	t.Helper()
	operator.Lock()
	defer operator.Unlock()
	if operator.process != nil && !operator.process.Ended() {
		return
	}
	var err error
	if operator.process, err = plane.StartExternalSecrets(context.WithoutCancel(t.Context()), 1); err != nil {
		t.Fatal(err)
	}
}

// stopOperator kills External Secrets.
func stopOperator() {
	operator.Lock()
	defer operator.Unlock()
	if operator.process != nil {
		operator.process.Kill()
	}
}
