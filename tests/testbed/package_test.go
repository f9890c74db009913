package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// bed is the control plane that the tests of this package share.
var bed *ControlPlane

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if bed, err = Start(context.Background(), Options{Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	start := time.Now()
	bed.Stop()
	fmt.Fprintf(os.Stderr, "testbed: stopped in %.1fs\n", time.Since(start).Seconds())
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
