package actuate

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func onHold() map[string]string {
	return map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"}
}

// The event was acked before the workload was known to want it, so it is not in flight.
func TestAChangeThatWasReadAgainAndRestsOutlivesTheActuator(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deploymentOf("web", "db", map[string]string{"team": "a"}))
	_, stop := c.start(c.options())
	version := c.next()
	c.publish(0, content("1"))
	c.decided()
	c.write("web", version, func(d *appsv1.Deployment) { d.Annotations = onHold() })
	c.isHeld("web", plan.OnHold, "")
	stop()
	_, stop = c.start(c.options())
	defer stop()
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	c.wantPatched("web")
	c.wantLast("web", "started content-changed")
}

func TestADeletionThatRestsOutlivesItsEventAndTheActuator(t *testing.T) {
	t.Parallel()
	optional := true
	deployment := deploymentOf("web", "db", rollOn("auto"))
	deployment.Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Optional = &optional
	c := newCluster(t, deployment)
	options := c.options()
	options.RollOnDelete = true
	_, stop := c.start(options)
	seq := c.publish(0, content("1"))
	c.wantPatched("web")
	c.annotated("web", onHold())
	c.publish(seq, func(change *events.Change) {
		content("1")(change)
		change.Verb, change.Changed = events.VerbDeleted, nil
	})
	c.isHeld("web", plan.OnHold, "")
	stop()
	// The stream drops the event of a deletion after a day.
	changes, err := c.js.Stream(t.Context(), events.StreamChanges)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Publish(t, func() error {
		return changes.Purge(t.Context(), jetstream.WithPurgeSubject(events.Subject("demo", db)))
	})
	_, stop = c.start(options)
	defer stop()
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	c.wantPatched("web", "web")
	c.wantTold("web", "started deleted: ")
	if !recordOf(c.get("web").Annotations[annotationRolled])["secret/db"].IsDeleted() {
		t.Errorf("the record is %s", c.get("web").Annotations[annotationRolled])
	}
}

// The slot of the namespace is taken, and the event was acked before the workload was known to want it.
func TestAChangeThatWasReadAgainAndWaitsForASlotOutlivesTheActuator(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deploymentOf("other", "db", rollOn("auto")), deploymentOf("web", "db", map[string]string{"team": "a"}))
	options := c.options()
	options.MaxRollouts, options.Namespaces = 1, []string{"shop"}
	_, stop := c.start(options)
	version := c.next()
	c.publish(0, content("1"))
	c.wantPatched("other")
	c.decided()
	c.write("web", version, func(d *appsv1.Deployment) { d.Annotations = rollOn("auto") })
	c.isHeld("web", plan.Limit, "")
	stop()
	_, stop = c.start(options)
	defer stop()
	c.set("other", c.complete)
	c.wantPatched("other", "web")
}

func TestWhatAWorkloadWaitsForIsNotedAsFarAsTheRecordHasRoom(t *testing.T) {
	annotations := rollOn("configmap/release-*")
	annotations[events.AnnotationHold] = "tofu"
	c := newStreamless(t, deploymentOf("web", "db", annotations))
	now, options := time.Now(), c.options()
	options.Now, options.RollOnDelete = func() time.Time { return now }, true
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.Read(deployments, c.get("web"))
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	for i := range 250 {
		e := eventOf(changeOf(func(ch *events.Change) {
			ch.Source = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: fmt.Sprintf("release-%d", i)}
			ch.Verb, ch.Changed, ch.Time = events.VerbDeleted, nil, now
		}))
		e.delivery.Received, e.delivery.Seq, e.open = now, uint64(i+1), 1
		l.intake.consider(t.Context(), e, w, nil)
	}
	now = now.Add(20 * time.Second)
	for range 120 {
		l.dispatcher.dispatch(t.Context())
		l.owing.advance(t.Context(), false)
		for !l.patcher.idle() {
			l.completion.finish(t.Context(), <-l.patcher.results)
		}
		now = now.Add(overdueCheck)
	}
	if p := l.debounce.byKey[w.Key()]; p == nil || p.held != plan.OnHold {
		t.Fatalf("it is %+v", p)
	}
	if n := len(c.records()); n != 1 {
		t.Errorf("the same is noted %d times in ten minutes, want once", n)
	}
}

func TestAWorkloadOfWhichAllIsNotedIsLookedAtAfterItHasChangedOrAPatchHasFailed(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	l := loopOf(t, testOptions(), w)
	p := l.debounce.pend(w, changeOf(nil))
	p.noteAt = written.Add(owingLook)
	l.dirty.add(w.Key())
	l.review(t.Context())
	if !p.noteAt.IsZero() {
		t.Error("it has changed, and is not looked at")
	}
	l.debounce.take(p)
	l.debounce.drop(p)
	later := l.debounce.pend(w, changeOf(nil))
	p.noteAt, later.noteAt = written.Add(owingLook), written.Add(owingLook)
	l.debounce.retry(p, written)
	if !later.noteAt.IsZero() || l.debounce.byKey[w.Key()] != later {
		t.Error("a patch has failed, and it is not looked at")
	}
}
