package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

const (
	// upgraded is how many Secrets change during an upgrade, each once, and changeEvery how long after one another.
	upgraded    = 60
	changeEvery = 80 * time.Millisecond
)

// The previous release is the previous commit. One program after the other is replaced while Secrets change, as a rollout of the
// watcher and then of the actuator does.
func TestAnUpgradeUnderLoadLosesNoChangeAndRollsNothingTwice(t *testing.T) {
	t.Parallel()
	previous, err := build.Commit(t.Context(), "HEAD~1", "./cmd/watcher", "./cmd/actuator")
	if errors.Is(err, build.ErrNoCommit) {
		t.Skip("there is no previous commit to upgrade from: ", err)
	}
	testkit.Must(t, err)
	u := newUpgrade(t)
	old, err := programs.New(t.Context(), plane, programs.Options{
		Dir: t.TempDir(), RBAC: "../../deploy/base/rbac.yaml", Binaries: programs.Binaries{Watcher: previous[0], Actuator: previous[1]},
		Env:         []string{"GORACE=atexit_sleep_ms=0"},
		WatcherArgs: []string{"--namespaces", u.namespace}, ActuatorArgs: []string{"--namespaces", u.namespace, "--settle", "50ms", "--leader-elect=false"},
	})
	testkit.Must(t, err)
	released := old.Upgraded(binaries)
	actuator := u.ready(old.StartActuator())
	watcher := u.ready(old.StartWatcher())

	u.awaitRecords() // They elect no leader, and then what changes while no actuator runs is found by the records alone.
	written := u.change(t.Context())
	u.await(written, upgraded/4)
	watcher.StopIn(t, testkit.Patience)
	u.ready(released.StartWatcher())
	u.await(written, upgraded/2)
	actuator.StopIn(t, testkit.Patience)
	u.ready(released.StartActuator())
	u.await(written, upgraded)
	u.eachRollsOnce()
}

// upgrade is a namespace of Deployments without pods, each with a Secret of its own.
type upgrade struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	templates *templates.Counter
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{T: t, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: plane.Namespace(t)}
	for _, name := range append(u.names(), "last") {
		workloads{t, u.client, u.namespace}.secret(name, "old")
		deployment := programs.NewDeployment(u.namespace, name, 0, map[string]string{"keyturn.dev/roll-on": "auto"})
		programs.ReadSecret(&deployment.Spec.Template, name)
		if _, err := u.client.AppsV1().Deployments(u.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if u.templates, err = templates.Watch(t.Context(), u.client, u.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.templates.Stop)
	return u
}

func (u *upgrade) names() []string {
	var names []string
	for number := range upgraded {
		names = append(names, fmt.Sprintf("app-%d", number))
	}
	return names
}

// awaitRecords waits until each Deployment has a record.
func (u *upgrade) awaitRecords() {
	u.Helper()
	testkit.Await(u.T, "each Deployment has a record", func(ctx context.Context) bool {
		list, err := u.client.AppsV1().Deployments(u.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return d.Annotations["keyturn.dev/rolled"] == "" })
	})
}

func (u *upgrade) write(name string) {
	if err := programs.SetSecret(u.Context(), u.client, u.namespace, name, map[string]string{"password": "new"}); err != nil {
		u.Error(err)
	}
}

// change changes each Secret once, and sends on the channel for each change.
func (u *upgrade) change(ctx context.Context) <-chan struct{} {
	written := make(chan struct{}, upgraded)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		ticker := time.NewTicker(changeEvery)
		defer ticker.Stop()
		for _, name := range u.names() {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				u.write(name)
				written <- struct{}{}
			}
		}
	}()
	u.Cleanup(func() {
		cancel()
		<-done
	})
	return written
}

// await waits until so many Secrets in all have changed.
func (u *upgrade) await(written <-chan struct{}, count int) {
	u.Helper()
	testkit.Eventually(u.T, fmt.Sprintf("%d secrets have changed", count), func() bool { return len(written) >= count })
}

// eachRollsOnce waits until each Deployment is rolled, and holds that none is rolled twice.
func (u *upgrade) eachRollsOnce() {
	u.Helper()
	testkit.Await(u.T, "each Deployment is rolled", func(context.Context) bool { return u.rolls() >= upgraded })
	// What is done twice is done by then: it was on the stream before this.
	u.write("last")
	testkit.Await(u.T, "the last Deployment is rolled", func(context.Context) bool { return u.templates.Seen()["deployment/last"] > 1 })
	for name, writes := range u.writes() {
		if writes != 2 {
			u.Errorf("%s was rolled %d times, want once", name, writes-1)
		}
	}
}

func (u *upgrade) ready(program *programs.Program, err error) *programs.Program {
	u.Helper()
	testkit.Must(u, err)
	program.StopAfter(u.T)
	program.AwaitReady(u.T, testkit.Patience)
	return program
}

// writes returns how often the template of each Deployment was written, by its name; 1 was never rolled.
func (u *upgrade) writes() map[string]int64 {
	u.Helper()
	counted, err := u.templates.Writes(u.Context())
	testkit.Must(u, err)
	writes := map[string]int64{}
	for workload, count := range counted {
		writes[strings.TrimPrefix(workload, "deployment/")] = count
	}
	return writes
}

// rolls is how many Deployments are seen to be rolled.
func (u *upgrade) rolls() int {
	count := 0
	for _, writes := range u.templates.Seen() {
		if writes > 1 {
			count++
		}
	}
	return count
}
