package tests

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// operator is the External Secrets Operator that the tests share. The first test that needs it starts it.
var operator struct {
	sync.Mutex
	process *process.Process
	// metrics is the host and port of its Prometheus metrics.
	metrics string
}

// startOperator starts External Secrets unless it is running.
func startOperator(t *testing.T) {
	t.Helper()
	operator.Lock()
	defer operator.Unlock()
	if operator.process != nil && !operator.process.Ended() {
		return
	}
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	operator.metrics = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	options := testbed.ExternalSecretsOptions{MetricsAddress: operator.metrics}
	if operator.process, err = plane.StartExternalSecrets(context.WithoutCancel(t.Context()), options); err != nil {
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
