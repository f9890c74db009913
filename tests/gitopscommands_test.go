package tests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// byHand is a tool that is run by hand, or by a pipeline: helm or kubectl.
type byHand struct {
	binary string
	// first and next are its arguments at the first release and at all others; what is applied follows.
	first, next []string
	// chart means that it takes the chart, and not the manifests.
	chart bool
}

// tool returns the path of a program of the test bed.
func tool(t *testing.T, name string) string {
	t.Helper()
	binary, err := build.Binary(t.Context(), os.Stderr, name)
	testkit.Must(t, err)
	return binary
}

func (c byHand) install(r *gitopsRig, app gitopsApp) { r.Helper(); c.apply(r, app, c.first) }

func (c byHand) sync(r *gitopsRig, app gitopsApp, _ string) { r.Helper(); c.apply(r, app, c.next) }

func (c byHand) apply(r *gitopsRig, app gitopsApp, args []string) {
	r.Helper()
	dir := filepath.Join(r.repository.Dir, app.name)
	if c.chart {
		args = append([]string{args[0], app.name, dir}, args[1:]...)
	} else {
		args = slices.Concat(args, []string{"--filename", filepath.Join(dir, "templates")})
	}
	r.run(c.binary, args...)
}

// await waits for the pods: a command has applied all when it ends.
func (byHand) await(r *gitopsRig, app gitopsApp, _ string) { r.Helper(); r.awaitPods(app) }
