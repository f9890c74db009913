// Package fleet holds the acceptance tests of many clusters: two real control planes, each with both programs, on real NATS
// servers that run with the very files of deploy/nats.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

// names are the names of the clusters that have a control plane. Two show everything that is between clusters.
var names = []string{"eu", "us"}

// bed is shared by the tests: the control planes of the clusters, and the binaries of the programs. Each test has its own namespaces,
// servers and processes.
type bed struct {
	planes   map[string]*testbed.ControlPlane
	binaries programs.Binaries
}

var (
	// shared returns the bed. The first call creates it; tests of NATS servers alone do not need it.
	shared = sync.OnceValues(func() (*bed, error) {
		var err error
		made, err = newBed(context.Background())
		return made, err
	})
	// made is the bed once there is one.
	made = &bed{}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer func() { made.stop() }()
	return m.Run()
}

// newBed builds the programs one after the other and starts the control planes in parallel. It must be stopped even after an
// error.
func newBed(ctx context.Context) (b *bed, err error) {
	b = &bed{planes: map[string]*testbed.ControlPlane{}}
	if b.binaries, err = programs.Build(ctx, build.Race()); err != nil {
		return b, fmt.Errorf("building the programs: %w", err)
	}
	if err := build.All(ctx, os.Stderr, build.Etcd, build.APIServer, build.ControllerManager, build.Node); err != nil {
		return b, err
	}
	started, errs := make([]*testbed.ControlPlane, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() { started[i], errs[i] = testbed.Start(ctx, testbed.Options{}) })
	}
	wg.Wait()
	for i, name := range names {
		if started[i] != nil {
			b.planes[name] = started[i]
		}
	}
	return b, errors.Join(errs...)
}

func (b *bed) stop() {
	var wg sync.WaitGroup
	for _, plane := range b.planes {
		wg.Go(plane.Stop)
	}
	wg.Wait()
}
