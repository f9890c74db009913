package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

// cluster is a site, as a part of a test sees it.
type cluster struct {
	*testing.T
	*site
}

// site is one control plane with both programs, for one test.
type site struct {
	// whole is the test, with which the programs end.
	whole     *testing.T
	name      string
	client    kubernetes.Interface
	namespace string
	programs  *programs.Programs
	watcher   *programs.Program
	actuator  *programs.Program
	templates *templates.Counter
	// crowd are the names of Deployments, and of the Secret that each of them reads, for what happens in the middle of something.
	crowd []string
	// values are those of the Secrets.
	values map[string]map[string]string
}

// newCluster prepares the programs of a cluster. They are scoped to a namespace of the test's own.
func newCluster(t *testing.T, name string, options programs.Options) *cluster {
	t.Helper()
	b, err := shared()
	testkit.Must(t, err)
	plane := b.planes[name]
	c := &cluster{T: t, site: &site{
		whole: t, name: name, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: plane.Namespace(t),
		values: map[string]map[string]string{},
	}}
	if c.templates, err = templates.Watch(t.Context(), c.client, c.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.templates.Stop)
	options.Cluster, options.Dir, options.RBAC, options.Binaries = name, t.TempDir(), "../../deploy/base/rbac.yaml", b.binaries
	options.Env = append(options.Env, "GORACE=atexit_sleep_ms=0")
	options.WatcherArgs = append(options.WatcherArgs, "--namespaces", c.namespace)
	options.ActuatorArgs = append(options.ActuatorArgs, "--namespaces", c.namespace, "--leader-elect=false", "--settle", "50ms")
	if c.programs, err = programs.New(t.Context(), plane, options); err != nil {
		t.Fatal(err)
	}
	return c
}

// with is the cluster for a part of the test.
func (c *cluster) with(t *testing.T) *cluster { return &cluster{T: t, site: c.site} }

func (c *cluster) startActuator() {
	c.Helper()
	actuator, err := c.programs.StartActuator()
	c.actuator = c.own(actuator, err)
}

func (c *cluster) startWatcher() {
	c.Helper()
	watcher, err := c.programs.StartWatcher()
	c.watcher = c.own(watcher, err)
}

// own waits until a program is ready, and stops it when the test ends.
func (c *cluster) own(program *programs.Program, err error) *programs.Program {
	c.Helper()
	testkit.Must(c, err)
	c.whole.Cleanup(func() {
		// The error is the exit status of a program that the test has killed.
		_ = program.Stop(testkit.Patience)
		if c.whole.Failed() {
			c.whole.Logf("log of %s of %s:\n%s", program.Name(), c.name, program.Output())
		}
	})
	program.AwaitReady(c.T, testkit.Patience)
	return program
}

// rotate creates or updates a Secret with new values under the keys. Its other keys stay unchanged.
func (c *cluster) rotate(secret string, keys ...string) {
	c.Helper()
	if c.values[secret] == nil {
		c.values[secret] = map[string]string{}
	}
	for _, key := range keys {
		c.values[secret][key] = rand.Text()
	}
	testkit.Must(c, programs.SetSecret(c.Context(), c.client, c.namespace, secret, c.values[secret]))
}

// rotateCrowd rotates the Secrets of the crowd, one after the other, so that midway is called while the watcher publishes.
func (c *cluster) rotateCrowd(midway func()) {
	c.Helper()
	for i, name := range c.crowd {
		if i == len(c.crowd)/2 {
			midway()
		}
		c.rotate(name, "password")
	}
}

// populate creates the workloads of a cluster before the programs start: web, which reads the Secret db; api and worker, which
// share another one; as many of the crowd; and fence.
func (c *cluster) populate(crowd int) {
	c.Helper()
	for _, secret := range []string{"db", "shared", "fence"} {
		c.rotate(secret, "password")
	}
	for i := range crowd {
		name := "crowd-" + strconv.Itoa(i)
		c.crowd = append(c.crowd, name)
		c.rotate(name, "password")
		c.deploy(name, name, 0)
	}
	c.deploy("fence", "fence", 0)
	c.deploy("api", "shared", 0)
	c.deploy("worker", "shared", 0)
	c.deploy("web", "db", 1)
}

// deploy creates a Deployment that reads the key password of a Secret.
func (c *cluster) deploy(name, secret string, replicas int32) {
	c.Helper()
	deployment := programs.NewDeployment(c.namespace, name, replicas, map[string]string{"keyturn.dev/roll-on": "auto"})
	programs.ReadSecretKey(&deployment.Spec.Template, secret, "password")
	if _, err := c.client.AppsV1().Deployments(c.namespace).Create(c.Context(), deployment, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

// available waits until all pods of a Deployment are available.
func (c *cluster) available(name string) {
	c.Helper()
	c.eventually("the pods of "+name+" are available", func(ctx context.Context) bool {
		found, err := c.client.AppsV1().Deployments(c.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && found.Status.AvailableReplicas == *found.Spec.Replicas
	})
}

// generations returns how often the pod template of each Deployment was written, its creation included.
func (c *cluster) generations() map[string]int64 {
	c.Helper()
	writes, err := c.templates.Writes(c.Context())
	testkit.Must(c, err)
	generations := make(map[string]int64, len(writes))
	for workload, count := range writes {
		generations[strings.TrimPrefix(workload, "deployment/")] = count
	}
	return generations
}

// rolls waits until the named Deployments were rolled, and all that came before is dealt with, and checks that they were
// rolled once and no other was.
func (c *cluster) rolls(before map[string]int64, deployments ...string) {
	c.Helper()
	want := maps.Clone(before)
	for _, name := range deployments {
		want[name]++
	}
	c.eventually(fmt.Sprintf("%v are rolled", deployments), func(context.Context) bool {
		now := c.templates.Seen()
		for name, generation := range want {
			if now["deployment/"+name] < generation {
				return false
			}
		}
		return true
	})
	c.fence(want)
}

// fence has one more change go all the way, so that whatever was to become of those before it has. No generation may have
// moved but its own.
func (c *cluster) fence(want map[string]int64) {
	c.Helper()
	want = maps.Clone(want)
	want["fence"]++
	c.rotate("fence", "password")
	c.eventually("the last change of all is rolled for", func(context.Context) bool { return c.templates.Seen()["deployment/fence"] >= want["fence"] })
	for name, generation := range c.generations() {
		if generation != want[name] {
			c.Errorf("%s in %s: generation is %d, want %d", name, c.name, generation, want[name])
		}
	}
}

func (c *cluster) eventually(what string, condition func(context.Context) bool) {
	c.Helper()
	testkit.Await(c.T, what+" in "+c.name, condition)
}
