// Package install tests deploy: Flux's own controllers apply it to a real control plane, and both programs run as the resulting
// pods specify.
package install

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

// plane is the control plane, with Flux, that the tests share, and binaries are the programs. The tests that
// install by Flux run one after the other, for the namespace of the programs has one name; those that do not, run after them.
var (
	plane    *testbed.ControlPlane
	binaries programs.Binaries
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	var err error
	if binaries, err = programs.Build(ctx, build.Race()); err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		return 1
	}
	if plane, err = testbed.Start(ctx, testbed.Options{Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	code := 1
	if err := plane.StartFlux(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	plane.Stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
