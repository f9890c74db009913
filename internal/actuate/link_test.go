package actuate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// decided waits until the actuator is done with every event.
func (c *cluster) decided() {
	c.Helper()
	c.eventually("every event is acked", func() bool {
		lag, err := c.bus.Lag(c.Context(), "actuator-demo")
		// The server counts what is stored for a consumer later: until then, nothing is pending.
		return err == nil && lag.AckFloor >= c.published && lag.Pending == 0 && lag.AckPending == 0
	})
}

// write changes a Deployment, whose resourceVersion becomes the given version.
func (c *cluster) write(name, version string, change func(*appsv1.Deployment)) {
	c.Helper()
	deployment := c.get(name)
	change(deployment)
	deployment.ResourceVersion = version
	if _, err := c.client.AppsV1().Deployments("shop").Update(c.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
}

// A reflector shows a write late, after the event of a later change was taken.
func TestAChangeIsNotMissedByAWorkloadThatHasJustComeToWantIt(t *testing.T) {
	tests := []struct {
		name   string
		before *appsv1.Deployment
		write  func(*appsv1.Deployment)
	}{
		{
			"an annotation", deploymentOf("web", "db", map[string]string{"team": "a"}),
			func(d *appsv1.Deployment) { d.Annotations = rollOn("auto") },
		},
		{
			"a reference", deploymentOf("web", "other", rollOn("auto")),
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Name = "db" },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, test.before)
			_, stop := c.start(c.options())
			defer stop()
			version := c.next()
			c.publish(0, nil)
			c.decided()
			c.write("web", version, test.write)
			c.eventually("it is rolled", func() bool { return len(c.patches()) == 1 })
		})
	}
}

func TestAWorkloadThatIsCreatedBeforeAChangeIsNotMissed(t *testing.T) {
	c := newCluster(t)
	_, stop := c.start(c.options())
	defer stop()
	version := c.next()
	c.publish(0, nil)
	c.decided()
	deployment := deploymentOf("web", "db", rollOn("auto"))
	c.complete(deployment)
	deployment.ResourceVersion = version
	if _, err := c.client.AppsV1().Deployments("shop").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("it is rolled", func() bool { return len(c.patches()) == 1 })
}

func TestAnOptInAfterAChangeRollsNothing(t *testing.T) {
	before, after := webDeployment("99", map[string]string{"team": "a"}), webDeployment("101", rollOn("auto"))
	l := loopOf(t, testOptions())
	read := func(d *appsv1.Deployment) *workload.Workload {
		w, _ := workload.Read(deployments, d, workload.Reading{})
		return w
	}
	l.intake.index.Listed(read(before), "")
	l.intake.index.Written(read(after))
	_, links := l.dirty.take()
	asked := question{workload: read(after).Key(), source: db, why: recallLinked}
	if _, ok := links[asked]; !ok || len(links) != 1 {
		t.Fatalf("asked about %v, want %v", links, asked)
	}
	l.intake.recall(t.Context(), answer{asked, &events.Delivery{Change: changeOf(nil), Deliveries: 1}})
	if len(l.debounce.byKey) != 0 || l.outbox.unpublished != 0 {
		t.Errorf("%d workloads are pending and %d outcomes waiting, want none: the change was before", len(l.debounce.byKey), l.outbox.unpublished)
	}
	later := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "102", "102" })
	l.intake.recall(t.Context(), answer{asked, &events.Delivery{Change: later, Deliveries: 1}})
	if len(l.debounce.byKey) != 1 {
		t.Error("a change that came later is not pending")
	}
}

// A standby sees what the leader sees, maybe sooner: the leader may be gone before it has asked.
func TestANewLeaderAsksForWhatTheLastOneMayHaveMissed(t *testing.T) {
	recorded := map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	l := loopOf(t, testOptions())
	observe := func(name string, exact bool, rolled map[string]workload.RolledFor) {
		w := workloadOf(t, "auto", wholeDB, named(name, func(w *workload.Workload) { w.Rolled = rolled }))
		if exact {
			l.intake.index.Written(w)
		} else {
			l.intake.index.Listed(w, "")
		}
	}
	observe("listed", false, nil)
	observe("created", true, nil)
	observe("recorded", true, recorded)
	var asked []string
	l.intake.resume(func(q question) { asked = append(asked, q.workload.Name) })
	if len(asked) != 1 || asked[0] != "created" {
		t.Errorf("asked for %v, want created: the others were there before, or have a record", asked)
	}
}
