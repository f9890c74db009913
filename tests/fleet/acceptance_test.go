package fleet

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
)

// size is how many Deployments, each with a Secret of its own, a cluster has for what happens in the middle of something.
const size = 40

// populate creates the workloads of a cluster before the programs start: web, which reads the Secret db; api and worker, which
// share another one; crowd-0, crowd-1 and so on; and fence.
func (c *cluster) populate() {
	c.Helper()
	for _, secret := range []string{"db", "shared", "fence"} {
		c.rotate(secret, "password", "unused")
	}
	for i := range size {
		c.rotate(crowd(i), "password")
		c.deploy(crowd(i), crowd(i), 0)
	}
	c.deploy("fence", "fence", 0)
	c.deploy("api", "shared", 0)
	c.deploy("worker", "shared", 0)
	c.deploy("web", "db", 1)
}

func crowd(i int) string { return "crowd-" + strconv.Itoa(i) }

// crowds are the names of the Deployments of the crowd.
func crowds() []string {
	all := make([]string, size)
	for i := range all {
		all[i] = crowd(i)
	}
	return all
}

// startAll makes a cluster of each name, fills them, and starts their programs, all beside each other.
func startAll(t *testing.T, options func(name string) programs.Options) map[string]*cluster {
	t.Helper()
	clusters := map[string]*cluster{}
	for _, name := range names {
		clusters[name] = newCluster(t, name, options(name))
	}
	t.Run("the programs start", func(t *testing.T) {
		for _, c := range clusters {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.with(t).populate()
			})
		}
	})
	for _, c := range clusters {
		c.startActuator()
		c.startWatcher()
	}
	return clusters
}

// acceptance is what every topology does in every cluster.
func acceptance() []struct {
	name string
	do   func(c *cluster)
} {
	return []struct {
		name string
		do   func(c *cluster)
	}{
		{"a changed Secret rolls what reads it, once, in its own cluster alone", func(c *cluster) {
			before := c.generations()
			c.rotate("db", "password")
			c.rolls(before, "web")
		}},
		{"a key that nothing reads rolls nothing", func(c *cluster) {
			before := c.generations()
			c.rotate("db", "unused")
			c.fence(before)
		}},
		{"a Secret that two read rolls both, once", func(c *cluster) {
			before := c.generations()
			c.rotate("shared", "password")
			c.rolls(before, "api", "worker")
		}},
		{"a watcher that is started again rolls for what was changed meanwhile, and for nothing else", func(c *cluster) {
			before := c.generations()
			if err := c.watcher.Stop(20 * time.Second); err != nil {
				c.Fatal(err)
			}
			c.rotate("shared", "password")
			c.startWatcher()
			c.rolls(before, "api", "worker")
		}},
		{"an actuator that is killed and started again rolls nothing", func(c *cluster) {
			before := c.generations()
			c.actuator.Kill()
			c.startActuator()
			c.fence(before)
		}},
	}
}

// accept runs the acceptance scenarios in all clusters, beside each other.
func accept(t *testing.T, clusters map[string]*cluster) {
	t.Helper()
	for _, scenario := range acceptance() {
		t.Run(scenario.name, func(t *testing.T) {
			for _, c := range clusters {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					scenario.do(c.with(t))
				})
			}
		})
	}
}
