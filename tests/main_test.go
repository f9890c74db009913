// Package tests holds the acceptance tests: both programs, with the permissions of deploy, on a real control plane.
package tests

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit/kubelet"
)

// plane is the control plane that the tests share, and binaries are the programs that they run.
// Each test has a namespace, and processes, of its own.
var (
	plane    *testbed.ControlPlane
	binaries programs.Binaries
)

func TestMain(m *testing.M) {
	if code, is := kubelet.Main(); is {
		os.Exit(code)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if binaries, err = programs.Build(context.Background(), build.Race()); err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		return 1
	}
	plane, err = testbed.Start(context.Background(), testbed.Options{Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer plane.Stop()
	defer operator.kill()
	defer argoRollouts.kill()
	return m.Run()
}
