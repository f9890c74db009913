// Package shared runs one NATS server with JetStream for all tests of a package, with an account for each: streams of two accounts have nothing to
// do with each other, whatever their names are. It imports no package of Keyturn, so that the tests of events can use it, too. Other packages use
// natstest.
package shared

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Main is the TestMain of a package whose tests share a server. It stops the server after the last test, and then does what [testkit.Main] does.
func Main(m *testing.M, options ...goleak.Option) {
	one.open()
	testkit.Main(tests{m}, options...)
}

// IsMain reports whether [Main] is the TestMain of this process.
func IsMain() bool { return one.isOpen() }

// tests are the tests of a package, with the end of their server.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	code := t.m.Run()
	if err := one.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
