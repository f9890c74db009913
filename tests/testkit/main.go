package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package that runs NATS servers: it runs the tests, and fails if they leave goroutines behind. It gives those
// that end by themselves [Patience], where goleak.VerifyTestMain gives half a second: a server that is stopped does not wait for all of its own.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	for deadline := time.Now().Add(Patience); code == 0; {
		err := goleak.Find(options...)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
