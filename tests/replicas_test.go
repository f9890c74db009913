package tests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// churn changes the Secrets of a fleet all the time, and compares the changes with the patches.
type churn struct {
	*rig
	mu sync.Mutex
	// open are the changes of each Deployment that no patch has answered yet, oldest first.
	open map[string][]madeChange
	// rolled is the resourceVersion that each Deployment was last rolled for, and revision what the roll left on its pod template.
	rolled   map[string]uint64
	revision map[string]string
	made     int
	patches  int
	// longest is the longest wait since the last call of gap.
	longest time.Duration
	extra   []string
}

// madeChange is one write of a Secret.
type madeChange struct {
	version uint64
	at      time.Time
}

// newChurn takes the Deployments of a fleet as they are now, and watches them until the test ends.
func (r *rig) newChurn() *churn {
	r.Helper()
	c := &churn{rig: r, open: map[string][]madeChange{}, rolled: map[string]uint64{}, revision: map[string]string{}}
	deployments := r.client.AppsV1().Deployments(r.namespace)
	list, err := deployments.List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for i := range list.Items {
		c.revision[list.Items[i].Name] = programs.Revision(&list.Items[i].Spec.Template)
	}
	testkit.Run(r.T, "watch of the Deployments", func(ctx context.Context) error {
		watch, err := deployments.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			return err
		}
		defer watch.Stop()
		for event := range watch.ResultChan() {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok {
				if err := c.observe(deployment, time.Now()); err != nil {
					return err
				}
			}
		}
		if ctx.Err() == nil {
			return errors.New("the API server has ended the watch")
		}
		return nil
	})
	return c
}

// observe compares a Deployment with the changes. A patch answers all changes up to the resourceVersion in the record.
func (c *churn) observe(deployment *appsv1.Deployment, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, revision := deployment.Name, programs.Revision(&deployment.Spec.Template)
	if revision == c.revision[name] {
		return nil // the status, or the record alone
	}
	c.patches++
	version, err := recorded(deployment)
	if err != nil {
		return err
	}
	if version <= c.rolled[name] {
		c.extra = append(c.extra, fmt.Sprintf("%s was rolled for version %d after %d", name, version, c.rolled[name]))
	}
	c.revision[name], c.rolled[name] = revision, version
	for len(c.open[name]) > 0 && c.open[name][0].version <= version {
		c.longest = max(c.longest, now.Sub(c.open[name][0].at))
		c.open[name] = c.open[name][1:]
	}
	return nil
}

// recorded returns the resourceVersion of the Secret that a Deployment of a fleet was last rolled for.
func recorded(deployment *appsv1.Deployment) (uint64, error) {
	var record map[string]string
	if err := json.Unmarshal([]byte(cmp.Or(deployment.Annotations["keyturn.dev/rolled"], "{}")), &record); err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(record["secret/"+strings.Replace(deployment.Name, "app-", "secret-", 1)], "@")
	version, _, _ := strings.Cut(rest, "/")
	return strconv.ParseUint(version, 10, 64)
}

// run writes one Secret after the other, one every 100 milliseconds, until ctx ends.
func (c *churn) run(ctx context.Context, size int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// The lock makes the observation of the patch wait until the change is noted.
		if err := c.change(context.WithoutCancel(ctx), i%size, strconv.Itoa(i)); err != nil {
			return err
		}
	}
}

func (c *churn) change(ctx context.Context, i int, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := fmt.Appendf(nil, `{"stringData":{"password":%q}}`, value)
	at := time.Now()
	secret, err := c.client.CoreV1().Secrets(c.namespace).Patch(ctx, ownSecret(i), "application/merge-patch+json", body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(secret.ResourceVersion, 10, 64)
	name := "app-" + strconv.Itoa(i)
	c.open[name] = append(c.open[name], madeChange{version, at})
	c.made++
	return err
}

// goesOn waits until changes that are made from now on are answered, and all before them.
func (c *churn) goesOn() {
	c.Helper()
	count := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.made
	}
	before := count()
	c.eventually("more changes are made", func(context.Context) bool { return count() >= before+20 })
	c.settled()
}

// settled waits until every change that was made until now is answered.
func (c *churn) settled() {
	c.Helper()
	until := time.Now()
	testkit.Await(c.T, "the changes until now are patched", func(context.Context) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, open := range c.open {
			if len(open) > 0 && open[0].at.Before(until) {
				return false
			}
		}
		return true
	}, c.waiting)
}

// waiting describes the changes that no patch has answered yet, with the record that each Deployment has by now.
func (c *churn) waiting() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.open)) {
		open := c.open[name]
		if len(open) == 0 {
			continue
		}
		fmt.Fprintf(&lines, "%s was rolled for version %d; %d later changes, from version %d, %s old\n\t%s\n", name, c.rolled[name], len(open),
			open[0].version, time.Since(open[0].at).Round(time.Millisecond), c.deployment(name).Annotations["keyturn.dev/rolled"])
	}
	return lines.String()
}

// gap returns the longest wait of a change for its patch since the last call.
func (c *churn) gap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := c.longest
	c.longest = 0
	return longest
}

// replica starts one of the actuators, and does not wait until it is ready.
func (r *rig) replica(i int) *programs.Program {
	r.Helper()
	actuator, err := r.programs.StartReplica(i)
	if err != nil {
		r.Fatal(err)
	}
	r.own(actuator)
	return actuator
}

func TestNoChangeIsLostWhileEachActuatorLosesItsVolumeInTurn(t *testing.T) {
	t.Parallel()
	holdElections(t)
	const size = 36
	r := newRig(t, programs.Options{Actuators: 3, ActuatorArgs: []string{"--settle", "50ms", "--leader-elect", "--max-rolls-per-hour", "0"}})
	r.fleet(size, ownSecret)
	began := time.Now()
	actuators := []*programs.Program{r.replica(0), r.replica(1), r.replica(2)}
	for _, actuator := range actuators {
		r.awaitReady(actuator)
	}
	t.Logf("three actuators were ready %s after their first start", time.Since(began).Round(time.Millisecond))
	r.startWatcher()
	r.startWatcher()
	c := r.newChurn()
	stop := testkit.Run(t, "churn", func(ctx context.Context) error { return c.run(ctx, size) })
	c.goesOn()
	t.Logf("without a loss a change was patched after at most %s", c.gap().Round(time.Millisecond))
	for i, actuator := range actuators {
		led := actuator.Leads()
		actuator.Kill()
		if err := os.RemoveAll(r.programs.StoreDir(i)); err != nil {
			t.Fatal(err)
		}
		c.goesOn() // It does not wait until the actuator is back.
		began := time.Now()
		actuators[i] = r.replica(i)
		r.awaitReady(actuators[i])
		ready := time.Since(began)
		c.goesOn()
		t.Logf("actuator %d (led: %t) lost: a change was patched after at most %s, and it was ready %s after it came back", i, led,
			c.gap().Round(time.Millisecond), ready.Round(time.Millisecond))
	}
	stop()
	c.settled()
	r.quiet()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%d changes, %d patches", c.made, c.patches)
	for _, extra := range c.extra {
		t.Errorf("an extra patch: %s", extra)
	}
}
