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

// step is one thing that is done, and what is to come of it.
type step struct {
	title, expected string
	// act does it.
	act func(ctx context.Context, s *stage, out *report) error
	// events are the sources of which an event is to be published, and no other source.
	events []string
	// rolls are the workloads that are to be rolled, each exactly once, and no other workload.
	rolls []string
	// check looks at what else came of it, when the workloads are rolled. Nil where nothing else should.
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
			expected: "its four readers roll; not deployment/legacy, which reads it too and has no annotation",
			act:      rotate("secret/db", "password"), events: []string{"secret/db"}, rolls: readers,
		},
		{
			title:    "Change a key of configmap/settings that nobody reads",
			expected: "nothing rolls: deployment/web and deployment/banner read another key of it",
			act:      changeUnreadKey, events: []string{"configmap/settings"},
		},
		{
			title:    "Apply the content of secret/db again, and change only its metadata",
			expected: "no event, and nothing rolls; a canary that is changed afterwards does",
			act:      changeNothing, events: []string{"secret/canary"}, rolls: []string{"deployment/canary"},
		},
		{
			title:    "Change secret/api and configmap/api together",
			expected: "deployment/api, which reads both, rolls once",
			act:      changeBoth, events: []string{"configmap/api", "secret/api"}, rolls: []string{"deployment/api"},
		},
		{
			title:    fmt.Sprintf("Kill the actuator while it rolls %d workloads for secret/license", workers),
			expected: "started again, it rolls those that are left: each of them is rolled exactly once",
			act:      killInTheMiddle, events: []string{"secret/license"}, rolls: sharing,
		},
		{
			title:    "Rotate secret/db while the watcher is down",
			expected: "when it is back it finds the one change: the readers roll once, and nothing else does",
			act:      rotateUnwatched, events: []string{"secret/db"}, rolls: readers,
		},
		{
			title:    "Ask why deployment/web was rolled",
			expected: "the actuator explains it, and so do the Kubernetes Events of the Deployment",
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
	// That an event was published comes first: what is asked for below is about the last one.
	if _, err := s.stream.done(ctx, s.published, []string{"configmap/settings"}); err != nil {
		return err
	}
	for _, name := range []string{"web", "banner"} {
		workload := events.Workload{Kind: "deployment", Namespace: namespace, Name: name}
		outcome, err := s.stream.skipped(ctx, "configmap/settings", workload)
		if err != nil {
			return err
		}
		out.line("happened", "%s was left alone: %s", workload, outcome.Message)
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
	out.did("the same content is applied again")
	label := []byte(`{"metadata":{"labels":{"team":"checkout"},"annotations":{"example.com/touched":"yes"}}}`)
	after, err := secrets.Patch(ctx, "db", types.MergePatchType, label, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("labelling secret/db: %w", err)
	}
	out.did("a label and an annotation are added: resourceVersion %s is now %s", before.ResourceVersion, after.ResourceVersion)
	if after.ResourceVersion == before.ResourceVersion {
		return errors.New("the API server has not stored the metadata")
	}
	// One watch brings all Secrets in order: when the canary is rolled, what came before it was looked at.
	return rotate("secret/canary", "song")(ctx, s, out)
}

func changeBoth(ctx context.Context, s *stage, out *report) error {
	out.did("secret/api has a new token, and configmap/api another timeout")
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
	// What it had asked for when it was killed may still come in.
	rolled = len(moved(s.seen, s.workloads.all()))
	out.did("%d of %d are rolled: SIGKILL", rolled, workers)
	if rolled >= workers {
		return errors.New("the actuator was too quick to be killed in the middle")
	}
	if err := s.startActuator(ctx); err != nil {
		return err
	}
	out.did("the actuator is back; what it had not acknowledged is delivered again within seconds")
	return nil
}

func rotateUnwatched(ctx context.Context, s *stage, out *report) error {
	if err := s.watcher.Stop(stopGrace); err != nil {
		return fmt.Errorf("stopping the watcher: %w", err)
	}
	out.did("the watcher is stopped")
	if err := rotate("secret/db", "password")(ctx, s, out); err != nil {
		return err
	}
	if err := s.startWatcher(ctx); err != nil {
		return err
	}
	out.did("the watcher is back")
	return nil
}
