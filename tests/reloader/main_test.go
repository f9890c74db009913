// Package reloader holds the acceptance tests of keyturn reloader: what Stakater's Reloader does, by its flags and annotations, on a real
// control plane. A file for each capability.
package reloader

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

// plane is the control plane that the tests share, and command is what they start. Each test has a namespace and a
// process of its own.
var (
	plane   *testbed.ControlPlane
	command *programs.Reloader
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if plane, err = testbed.Start(context.Background(), testbed.Options{Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer plane.Stop()
	if command, err = programs.NewReloader(context.Background(), plane, "../../deploy", build.Race()); err != nil {
		fmt.Fprintln(os.Stderr, "building the command:", err)
		return 1
	}
	return m.Run()
}
