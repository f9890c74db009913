package tests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// outcomes reads all outcomes from HISTORY, in their order. While the disk is busy, or a server is killed, that may take several attempts.
func (r *rig) outcomes() (outcomes []events.Outcome) {
	r.Helper()
	var failed error
	testkit.Await(r.T, "the outcomes can be read", func(ctx context.Context) bool {
		outcomes, failed = r.readOutcomes(ctx)
		return failed == nil
	}, func() string { return fmt.Sprintf("the last attempt: %v", failed) })
	return outcomes
}

// readOutcomes is outcomes in one attempt.
func (r *rig) readOutcomes(ctx context.Context) (outcomes []events.Outcome, err error) {
	connection, err := r.dialNATS()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, err
	}
	consumer, err := js.CreateConsumer(ctx, events.StreamHistory, jetstream.ConsumerConfig{
		FilterSubject: "keyturn.history.v1.demo.rollout.>", AckPolicy: jetstream.AckNonePolicy,
		// It is deleted below. A test that waits for the CPU must not lose it before it reads.
		InactiveThreshold: time.Minute,
		// One that is on the disk takes the server seconds to make when the disk is busy.
		MemoryStorage: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		// An error is that the server deletes it a minute later.
		_ = js.DeleteConsumer(ctx, events.StreamHistory, consumer.CachedInfo().Name)
	}()
	batch, err := consumer.FetchNoWait(int(consumer.CachedInfo().NumPending) + 1)
	if err != nil {
		return nil, err
	}
	for msg := range batch.Messages() {
		outcome, err := storedIn(msg).Outcome()
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, batch.Error()
}

// storedIn returns the event in a message of HISTORY.
func storedIn(msg jetstream.Msg) events.Stored {
	return events.NewStored(events.ChangesRoot+strings.TrimPrefix(msg.Subject(), events.HistoryRoot), 0, time.Time{}, msg.Headers(), msg.Data())
}

// outcomeOf waits for an outcome at a Deployment.
func (r *rig) outcomeOf(name string, verb events.Verb) events.Outcome {
	r.Helper()
	var found events.Outcome
	var failed error
	testkit.Await(r.T, "there is an outcome "+string(verb)+" of "+name, func(ctx context.Context) bool {
		var outcomes []events.Outcome
		outcomes, failed = r.readOutcomes(ctx)
		for _, outcome := range outcomes {
			if outcome.Workload.Name == name && outcome.Verb == verb {
				found = outcome
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprintf("the last reading: %v", failed) })
	return found
}

// count counts the outcomes of a kind at a Deployment.
func (r *rig) count(name string, verb events.Verb) int {
	r.Helper()
	count := 0
	for _, outcome := range r.outcomes() {
		if outcome.Workload.Name == name && outcome.Verb == verb {
			count++
		}
	}
	return count
}

// reading makes a Deployment that reads a Secret.
func (r *rig) reading(name, secret string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	all := map[string]string{"keyturn.dev/roll-on": "auto"}
	maps.Copy(all, annotations)
	deployment := programs.NewDeployment(r.namespace, name, replicas, all)
	programs.ReadSecret(&deployment.Spec.Template, secret)
	return deployment
}

func TestNoMoreRolloutsAreInProgressThanTheLimitAndTheWavesAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--max-rollouts", "2"}})
	r.secret("shared", map[string]string{"password": "one"})
	for i := range 8 {
		r.deploy(r.reading("app-"+strconv.Itoa(i), "shared", 2, nil))
	}
	r.secret("waves", map[string]string{"password": "one"})
	for _, wave := range []string{"-1", "0", "1", "2"} {
		r.deploy(r.reading("wave"+wave, "waves", 2, map[string]string{"keyturn.dev/wave": wave}))
	}
	r.start()
	r.step("no more rollouts are in progress than the limit allows", (*rig).keepsToTheLimit)
	r.step("a lower wave is done before a higher one begins", (*rig).keepsToTheWaves)
}

// keepsToTheLimit is for the first rollouts of the rig.
func (r *rig) keepsToTheLimit() {
	r.Helper()
	r.secret("shared", map[string]string{"password": "two"})
	for i := range 8 {
		r.outcomeOf("app-"+strconv.Itoa(i), events.VerbCompleted)
	}
	inProgress, most, held := 0, 0, 0
	for _, outcome := range r.outcomes() {
		switch outcome.Verb {
		case events.VerbStarted:
			inProgress++
		case events.VerbCompleted:
			inProgress--
		case events.VerbHeld:
			held++
			if outcome.Reason != "limit-reached" {
				r.Errorf("reason to hold %s: got %s, want limit-reached", outcome.Workload, outcome.Reason)
			}
		}
		most = max(most, inProgress)
	}
	if most > 2 {
		r.Errorf("rollouts in progress at a time: got %d, want at most 2", most)
	}
	if held == 0 {
		r.Error("no workload was told that it waits")
	}
}

func (r *rig) keepsToTheWaves() {
	r.Helper()
	r.secret("waves", map[string]string{"password": "two"})
	r.outcomeOf("wave2", events.VerbCompleted)
	var order []string
	for _, outcome := range r.outcomes() {
		if strings.HasPrefix(outcome.Workload.Name, "wave") && (outcome.Verb == events.VerbStarted || outcome.Verb == events.VerbCompleted) {
			order = append(order, outcome.Workload.Name+" "+string(outcome.Verb))
		}
	}
	want := []string{
		"wave-1 started", "wave-1 completed", "wave0 started", "wave0 completed",
		"wave1 started", "wave1 completed", "wave2 started", "wave2 completed",
	}
	if !slices.Equal(order, want) {
		r.Errorf("order of rollouts:\ngot  %s\nwant %s", strings.Join(order, ", "), strings.Join(want, ", "))
	}
}

func TestARolloutIsFollowedToItsEndByTheNextActuator(t *testing.T) {
	t.Parallel()
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	web := r.reading("web", "db", 1, nil)
	r.deploy(web)
	// From now on new pods find no node, and the old one stays until they do.
	r.patchDeployment("web", `{"spec":{"template":{"spec":{"nodeSelector":{"example.com/nowhere":"true"}}}}}`)
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	started := r.outcomeOf("web", events.VerbStarted)
	r.actuator.Kill()
	r.patchDeployment("web", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	r.startActuator()
	completed := r.outcomeOf("web", events.VerbCompleted)
	if completed.Revision != started.Revision || completed.Cause != started.Cause {
		t.Errorf("completed: got revision %s for %s, want %s for %s", completed.Revision, completed.Cause, started.Revision, started.Cause)
	}
	r.eventually("an Event of the Deployment says what was rolled for what", func(context.Context) bool {
		list := r.kubeEvents("web", "RolloutCompleted")
		return len(list) == 1 && strings.Contains(list[0].Message, "rolled for secret/db")
	})
}
