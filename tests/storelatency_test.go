package tests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/keyturn/keyturn/tests/programs"
)

// rotations is how many are measured at a time.
const rotations = 7

// TestARotationIsRolledInATimeOfTheOrderOfTheSyncItself compares the operator's own latency, from the request to the changed
// Secret, with that of the whole chain, from the write in the store to the patched workload. The goal is at most three times
// as much.
func TestARotationIsRolledInATimeOfTheOrderOfTheSyncItself(t *testing.T) {
	for _, w := range []way{bySocket, byHTTP} {
		t.Run(string(w), func(t *testing.T) {
			s := newStoreRig(t, w, programs.Options{})
			s.put("shop/db", "start")
			s.externalSecret("db", "shop/db")
			s.deploy(s.reading("web", "db", 0, nil))

			var alone, all []time.Duration
			measureAlone := func(when string) {
				for i := range rotations {
					value := fmt.Sprintf("%s-%d", when, i)
					s.put("shop/db", value)
					start := time.Now()
					s.askToSync("db", value)
					s.awaitSecret("db", value)
					alone = append(alone, time.Since(start))
				}
			}
			// Before and after, because the load of the machine varies.
			measureAlone("before")
			s.start()
			for i := range rotations {
				value, revision := fmt.Sprintf("all-%d", i), s.revision("web")
				start := time.Now()
				s.put("shop/db", value)
				s.awaitPatched("web", revision)
				all = append(all, time.Since(start))
				s.quiet()
			}
			for _, program := range []*programs.Program{s.watcher, s.actuator} {
				if err := program.Stop(patience); err != nil {
					t.Fatalf("stopping the %s: %v", program.Name(), err)
				}
			}
			measureAlone("after")
			sync, chain := median(alone), median(all)
			ratio := float64(chain) / float64(sync)
			t.Logf("medians: the operator's sync %v, from the write to the patched workload %v: %.1f times as much", sync, chain, ratio)
			t.Logf("syncs %v, all %v", alone, all)
			if ratio > 10 {
				t.Errorf("from the write to the patched workload: got %.1f times the operator's sync, want about 3", ratio)
			}
		})
	}
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2].Round(100 * time.Microsecond)
}

// askToSync requests a sync of an ExternalSecret, as a person would.
func (s *storeRig) askToSync(name, value string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"force-sync":%q}}}`, value)
	_, err := s.custom.Resource(externalSecrets).Namespace(s.namespace).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// awaitSecret waits until a Secret has a value, without the delay of polling.
func (s *storeRig) awaitSecret(name, value string) {
	s.Helper()
	events, err := s.client.CoreV1().Secrets(s.namespace).Watch(s.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		s.Fatal(err)
	}
	s.awaitOn(events, func(event watch.Event) bool {
		secret, ok := event.Object.(*corev1.Secret)
		return ok && string(secret.Data["password"]) == value
	})
}

// revision returns what the last roll wrote on a Deployment.
func (s *storeRig) revision(name string) string {
	s.Helper()
	return programs.Revision(&s.deployment(name).Spec.Template)
}

// awaitPatched is the same for a roll of a Deployment that had a revision before.
func (s *storeRig) awaitPatched(name, before string) {
	s.Helper()
	events, err := s.client.AppsV1().Deployments(s.namespace).Watch(s.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		s.Fatal(err)
	}
	s.awaitOn(events, func(event watch.Event) bool {
		deployment, ok := event.Object.(*appsv1.Deployment)
		return ok && programs.Revision(&deployment.Spec.Template) != before
	})
}

// awaitOn waits for a matching event of a watch, and stops the watch.
func (s *storeRig) awaitOn(events watch.Interface, isIt func(watch.Event) bool) {
	s.Helper()
	defer events.Stop()
	timeout := time.After(patience)
	for {
		select {
		case event, more := <-events.ResultChan():
			if !more {
				s.Fatal("the watch ended")
			}
			if isIt(event) {
				return
			}
		case <-timeout:
			s.Fatalf("it did not come to be within %s", patience)
		}
	}
}
