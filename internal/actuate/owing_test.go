package actuate

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
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
	if err := changes.Purge(t.Context(), jetstream.WithPurgeSubject(events.Subject("demo", db))); err != nil {
		t.Fatal(err)
	}
	_, stop = c.start(options)
	defer stop()
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	c.wantPatched("web", "web")
	c.wantTold("web", "started deleted: ")
	if !recordOf(c.get("web").Annotations[annotationRolled])["secret/db"].IsDeleted() {
		t.Errorf("the record is %s", c.get("web").Annotations[annotationRolled])
	}
}
