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

// accept has all clusters pass the scenarios of acceptance.
func accept(t *testing.T, clusters map[string]*cluster) {
	t.Helper()
	for _, scenario := range []struct {
		name   string
		do     func(c *cluster)
		rolled []string
	}{
		{"a changed Secret rolls what reads it, once, in its own cluster alone", func(c *cluster) {
			c.rotate("db", "password")
		}, []string{"web"}},
		{"a key that nothing reads rolls nothing", func(c *cluster) {
			c.rotate("db", "unused")
		}, nil},
		{"a Secret that two read rolls both, once", func(c *cluster) {
			c.rotate("shared", "password")
		}, []string{"api", "worker"}},
		{"a watcher that is started again rolls for what was changed meanwhile, and for nothing else", func(c *cluster) {
			if err := c.watcher.Stop(testkit.Patience); err != nil {
				c.Fatal(err)
			}
			c.rotate("shared", "password")
			c.startWatcher()
		}, []string{"api", "worker"}},
		{"an actuator that is killed and started again rolls nothing", func(c *cluster) {
			c.actuator.Kill()
			c.startActuator()
		}, nil},
	} {
		t.Run(scenario.name, func(t *testing.T) { together(t, clusters, scenario.do, scenario.rolled...) })
	}
}
