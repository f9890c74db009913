package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// step is one change, and its expected result.
type step struct {
	title, expected string
	// act makes the change.
	act func(ctx context.Context, s *stage, out *report) error
	// events are the only sources that an event is expected for.
	events []string
	// rolls are the only workloads that are expected to roll, each exactly once.
	rolls []string
	// check examines further effects once the workloads have rolled. May be nil.
	check func(ctx context.Context, s *stage, out *report) error
}

func scenario() []step {
	readers := []string{"deployment/web", "statefulset/queue", "daemonset/agent", "cronjob/report"}
	var sharing []string
	for i := range workers {
		sharing = append(sharing, fmt.Sprintf("deployment/worker-%02d", i+1))
	}
	return []step{
		{
			title:    "Rotate secret/db",
			expected: "its four readers roll; deployment/legacy reads it too but has not opted in, so it does not",
			act:      rotate("secret/db", "password"), events: []string{"secret/db"}, rolls: readers,
		},
		{
			title:    "Change a key of configmap/settings that no pod reads",
			expected: "nothing rolls: deployment/web and deployment/banner read a different key",
			act:      changeUnreadKey, events: []string{"configmap/settings"},
		},
		{
			title:    "Reapply secret/db unchanged, then change only its metadata",
			expected: "no event, and no rollout, except of the canary whose Secret changes afterwards",
			act:      changeNothing, events: []string{"secret/canary"}, rolls: []string{"deployment/canary"},
		},
		{
			title:    "Change secret/api and configmap/api together",
			expected: "deployment/api reads both and rolls once",
			act:      changeBoth, events: []string{"configmap/api", "secret/api"}, rolls: []string{"deployment/api"},
		},
		{
			title:    fmt.Sprintf("Kill the actuator while it rolls %d workloads for secret/license", workers),
			expected: "after a restart it rolls the rest: every workload rolls exactly once",
			act:      killInTheMiddle, events: []string{"secret/license"}, rolls: sharing,
		},
		{
			title:    "Rotate secret/db while the watcher is down",
			expected: "after a restart the watcher finds the change: the readers roll once, and nothing else rolls",
			act:      unwatched(rotate("secret/db", "password")), events: []string{"secret/db"}, rolls: readers,
		},
		{
			title:    "Ask why deployment/web was rolled",
			expected: "`keyturn explain` gives the reason, and so do the Kubernetes Events of the Deployment",
			act:      ask,
		},
	}
}

func rotate(source, key string) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		out.did("%s has a new %s", source, key)
		return s.set(ctx, source, key, rand.Text())
	}
}

func changeUnreadKey(ctx context.Context, s *stage, out *report) error {
	out.did("configmap/settings has a new comment")
	if err := s.set(ctx, "configmap/settings", "comment", "still nobody reads this key"); err != nil {
		return err
	}
	// Wait for the event first: the outcome asked for below must be that of the latest event.
	if _, err := s.stream.done(ctx, s.published, []string{"configmap/settings"}); err != nil {
		return err
	}
	for _, name := range []string{"web", "banner"} {
		workload := events.Workload{Kind: "deployment", Namespace: namespace, Name: name}
		outcome, err := s.stream.skipped(ctx, "configmap/settings", workload)
		if err != nil {
			return err
		}
		out.line("result", "%s skipped: %s", workload, outcome.Message)
	}
	return nil
}

func changeNothing(ctx context.Context, s *stage, out *report) error {
	secrets := s.client.CoreV1().Secrets(namespace)
	before, err := secrets.Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading secret/db: %w", err)
	}
	again := before.DeepCopy()
	again.ManagedFields = nil
	if _, err := secrets.Update(ctx, again, metav1.UpdateOptions{FieldManager: "somebody-else"}); err != nil {
		return fmt.Errorf("applying secret/db: %w", err)
	}
	out.did("reapplied the same content")
	label := []byte(`{"metadata":{"labels":{"team":"checkout"},"annotations":{"example.com/touched":"yes"}}}`)
	after, err := secrets.Patch(ctx, "db", types.MergePatchType, label, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("labelling secret/db: %w", err)
	}
	out.did("added a label and an annotation: resourceVersion %s is now %s", before.ResourceVersion, after.ResourceVersion)
	if after.ResourceVersion == before.ResourceVersion {
		return errors.New("the API server did not store the metadata")
	}
	// One watch delivers all Secrets in order: once the canary has rolled, the earlier changes were processed.
	return rotate("secret/canary", "song")(ctx, s, out)
}

func changeBoth(ctx context.Context, s *stage, out *report) error {
	out.did("secret/api has a new token, and configmap/api a new timeout")
	if err := s.set(ctx, "secret/api", "token", rand.Text()); err != nil {
		return err
	}
	return s.set(ctx, "configmap/api", "timeout", "45s")
}

func killInTheMiddle(ctx context.Context, s *stage, out *report) error {
	if err := rotate("secret/license", "key")(ctx, s, out); err != nil {
		return err
	}
	var rolled int
	err := s.workloads.until(ctx, func(now map[string]sight) bool {
		rolled = len(moved(s.seen, now))
		return rolled > atOnce
	})
	if err != nil {
		return fmt.Errorf("waiting for the first %d rolls: %w", atOnce+1, err)
	}
	s.actuator.Kill()
	// A patch that it sent just before it was killed may still arrive.
	rolled = len(moved(s.seen, s.workloads.all()))
	out.did("killed the actuator with %d of %d workloads rolled", rolled, workers)
	if rolled >= workers {
		return errors.New("the actuator had already rolled every workload when it was killed")
	}
	if err := s.startActuator(ctx); err != nil {
		return err
	}
	out.did("restarted the actuator; it compares what each source has with the records")
	return nil
}

// unwatched makes a change while the watcher is down.
func unwatched(act func(context.Context, *stage, *report) error) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		if err := s.watcher.Stop(stopGrace); err != nil {
			return fmt.Errorf("stopping the watcher: %w", err)
		}
		out.did("stopped the watcher")
		if err := act(ctx, s, out); err != nil {
			return err
		}
		if err := s.startWatcher(ctx); err != nil {
			return err
		}
		out.did("restarted the watcher")
		return nil
	}
}
