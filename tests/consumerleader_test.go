package tests

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// consumer returns what the servers say of the actuators' consumer, nil while none answers.
func (r *rig) consumer(ctx context.Context, js jetstream.JetStream) *jetstream.ConsumerInfo {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	consumer, err := js.Consumer(bounded, events.StreamChanges, "actuator-"+r.programs.Cluster())
	if err != nil {
		return nil
	}
	return consumer.CachedInfo()
}

// moveConsumer has another server lead the actuators' consumer, and returns which.
func (r *rig) moveConsumer(js jetstream.JetStream) string {
	r.Helper()
	before, after := "", ""
	r.eventually("another server leads the consumer", func(ctx context.Context) bool {
		info := r.consumer(ctx, js)
		if info == nil || info.Cluster == nil || info.Cluster.Leader == "" {
			return false
		}
		if before == "" {
			before = info.Cluster.Leader
		}
		if after = info.Cluster.Leader; after == before {
			// It may be elected again. Without an answer it is asked again, too.
			_, _ = js.Conn().Request("$JS.API.CONSUMER.LEADER.STEPDOWN."+events.StreamChanges+"."+info.Name, nil, time.Second)
			return false
		}
		return true
	})
	return after
}

// An event that a workload waits with stays on the stream for as long as that takes, whichever server delivers it and whichever actuator leads.
func TestNothingIsLostOrDoubledWhileTheConsumersLeaderChangesAndAnEventIsHeld(t *testing.T) {
	t.Parallel() // most of it is waiting for elections
	holdElections(t)
	const size, moves = 5, 3
	r := newRig(t, programs.Options{Actuators: 3, ActuatorArgs: []string{"--settle", "50ms", "--leader-elect", "--max-rollouts", "1"}})
	r.fleet(size, ownSecret)
	for _, name := range []string{"stuck", "waiting", "held", "secret-late"} {
		r.secret(name, map[string]string{"password": "one"})
	}
	r.createStuck(r.reading("stuck", "stuck", 1, nil))
	for _, name := range []string{"waiting", "held"} {
		r.deploy(r.reading(name, name, 1, nil))
	}
	actuators := []*programs.Program{r.replica(0), r.replica(1), r.replica(2)}
	for _, actuator := range actuators {
		r.awaitReady(actuator)
	}
	r.startWatcher()
	r.awaitRecords()
	js := r.jetstream()
	c, before := r.newChurn(), r.tally()

	r.secret("stuck", map[string]string{"password": "two"})
	r.outcomeOf("stuck", events.VerbStarted)
	for _, name := range []string{"waiting", "held"} {
		r.secret(name, map[string]string{"password": "two"})
		r.outcomeOf(name, events.VerbHeld)
	}
	r.secret("secret-late", map[string]string{"password": "two"})
	round := 0
	changeAll := func() {
		t.Helper()
		round++
		for i := range size {
			if err := c.change(t.Context(), i, "round-"+strconv.Itoa(round)); err != nil {
				t.Fatal(err)
			}
		}
		c.settled()
	}
	for range moves {
		leader := r.moveConsumer(js)
		r.secret("held", map[string]string{"password": "moved to " + leader + " in round " + strconv.Itoa(round)})
		changeAll()
	}
	if got := r.tally().since(before); got["deployment/held"]+got["deployment/waiting"] != 0 {
		t.Fatalf("they are not held: %v", got)
	}

	led := slices.IndexFunc(actuators, (*programs.Program).Leads)
	if led < 0 {
		t.Fatal("no actuator leads")
	}
	actuators[led].Kill()
	changeAll()
	actuators[led] = r.replica(led)
	r.awaitReady(actuators[led])
	// The next leader has taken no event of the Secret that changed after that of the workload that waits. That it is acked the consumer does not
	// tell, while the earlier one is not.
	r.eventually("an event is held", func(ctx context.Context) bool {
		info := r.consumer(ctx, js)
		return info != nil && info.NumAckPending > 0
	})
	late := r.reading("app-late", "secret-late", 0, nil)
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.eventually("what comes to read a Secret has a record while another event is held", func(context.Context) bool {
		return strings.Contains(r.deployment(late.Name).Annotations[recordAnnotation], "secret/secret-late")
	})

	if err := r.client.AppsV1().Deployments(r.namespace).Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.outcomeOf("held", events.VerbCompleted)
	r.outcomeOf("waiting", events.VerbCompleted)
	changeAll()
	r.quiet()
	want := tally{"deployment/held": 1, "deployment/waiting": 1, "deployment/" + late.Name: 1} // The last was created.
	for i := range size {
		want["deployment/app-"+strconv.Itoa(i)] = int64(round)
	}
	got := r.tally().since(before)
	delete(got, "deployment/stuck")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rollouts (-want +got):\n%s", diff)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, extra := range c.extra {
		t.Errorf("an extra patch: %s", extra)
	}
	secret, err := r.client.CoreV1().Secrets(r.namespace).Get(t.Context(), "held", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if version := strconv.FormatUint(c.rolled["held"], 10); version != secret.ResourceVersion {
		t.Errorf("it was rolled for version %s, want the last, %s", version, secret.ResourceVersion)
	}
}
