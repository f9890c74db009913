package fleet

import (
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startAll makes a cluster of each name, with a crowd of that size, and starts their programs.
func startAll(t *testing.T, crowd int, options func(name string) programs.Options) map[string]*cluster {
	t.Helper()
	clusters := map[string]*cluster{}
	for _, name := range names {
		clusters[name] = newCluster(t, name, options(name))
		clusters[name].populate(crowd)
	}
	for _, name := range names {
		c := clusters[name]
		c.available("web")
		c.startActuator()
		c.startWatcher()
	}
	return clusters
}

// together has each cluster do the same before it waits for any, and checks of each that it has rolled the named Deployments once, and no other. A
// parallel subtest for each cluster would wait until tests are through that have not begun, while the programs of this one are running.
func together(t *testing.T, clusters map[string]*cluster, do func(c *cluster), rolled ...string) {
	t.Helper()
	before := map[string]map[string]int64{}
	for _, name := range names {
		before[name] = clusters[name].with(t).generations()
	}
	for _, name := range names {
		do(clusters[name].with(t))
	}
	for _, name := range names {
		clusters[name].with(t).rolls(before[name], rolled...)
	}
}

// accept has each cluster roll for its own change.
func accept(t *testing.T, clusters map[string]*cluster) {
	t.Helper()
	t.Run("a changed Secret rolls what reads it, once, in its own cluster alone", func(t *testing.T) {
		together(t, clusters, func(c *cluster) { c.rotate("db", "password") }, "web")
	})
	t.Run("a watcher that is started again rolls for what was changed meanwhile, and for nothing else", func(t *testing.T) {
		together(t, clusters, func(c *cluster) {
			testkit.Must(c, c.watcher.Stop(testkit.Patience))
			c.rotate("shared", "password")
			c.startWatcher()
		}, "api", "worker")
	})
}
