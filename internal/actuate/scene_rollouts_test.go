//go:build !race

package actuate_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// The annotations in which people see what was rolled.
const (
	annotationRecord   = "keyturn.dev/rolled"
	annotationRevision = "keyturn.dev/revision"
)

// patchReaction answers a patch, or leaves that to the API server.
type patchReaction func(request k8stesting.PatchActionImpl) (handled bool, answer runtime.Object, err error)

// onPatch lets a test answer the patches of the actuator that was started last, until the returned function is called.
func (s *scene) onPatch(react patchReaction) (end func()) {
	s.Helper()
	var ended atomic.Bool
	s.intercept("patch", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		request, ok := action.(k8stesting.PatchActionImpl)
		if !ok || ended.Load() {
			return false, nil, nil
		}
		return react(request)
	})
	return func() { ended.Store(true) }
}

// apply carries out a patch.
func (c *cluster) apply(request k8stesting.PatchActionImpl) (runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.patch(request)
}

// strip lets admission remove what rolls write on pod templates, until the returned function is called.
func (s *scene) strip() (end func()) {
	s.Helper()
	return s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
		var err error
		request.Patch, err = json.Marshal(slices.DeleteFunc(stepsOf(request.Patch), func(step patchStep) bool {
			return strings.HasPrefix(step.Path, "/spec/")
		}))
		if err != nil {
			return true, nil, err
		}
		answer, err := s.apply(request)
		return true, answer, err
	})
}

// loseAnswers lets patches be carried out, and their answers be lost, until the returned function is called.
func (s *scene) loseAnswers() (end func()) {
	s.Helper()
	return s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
		if _, err := s.apply(request); err != nil {
			return true, nil, err
		}
		return true, nil, errors.New("connection reset by peer")
	})
}

// patchStep is one step of a JSON patch.
type patchStep struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// stepsOf returns the steps of a JSON patch.
func stepsOf(body []byte) []patchStep {
	var steps []patchStep
	if err := json.Unmarshal(body, &steps); err != nil {
		panic(err)
	}
	return steps
}

// rolling makes web, which reads all of secret/db, has an actuator started, and rolls it for a change. Its new pods do not become ready.
func (s *scene) rolling() *running {
	s.Helper()
	r := s.beginWeb()
	s.stall("web")
	s.settled("secret/db", "password", "two")
	return r
}

// revert has an operator that knows nothing of the last roll of a workload restore the pod template of before, and note on the workload when it did.
// It wants both to be told.
func (s *scene) revert(name string, more ...aspect) {
	s.Helper()
	aspects := append([]aspect{unrolled}, more...)
	s.writeAs("operator", name, append(aspects, annotated("example.org/synced", s.elapsed().String()))...)
	s.pass(time.Second)
	s.wantTold(name+" started content-changed", name+" failed reverted")
}

// logged counts how often the actuators have logged a text.
func (s *scene) logged(text string) int {
	return strings.Count(s.logText(), text)
}

// pods says how many pods of a Deployment are of the new template, and how many of all are available.
func (c *cluster) pods(name string, updated, available int32) {
	c.t.Helper()
	c.overwrite(name, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: updated, ReadyReplicas: available, AvailableReplicas: available,
		}
	})
}

// holder returns who holds the Lease of the actuators, empty if nobody does.
func (c *cluster) holder() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	object, err := c.storage.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "keyturn-system", "keyturn-actuator")
	if err != nil {
		return ""
	}
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// podAnnotated gives the pod template an annotation.
func podAnnotated(key, value string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
}

// unrolled restores the pod template from before all rolls.
func unrolled(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) { pod.Annotations = nil }

// deniedByAdmission is the answer to a patch of a Deployment that an admission webhook denies.
func deniedByAdmission() error {
	return apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("admission webhook denied the request: not today"))
}

// unavailable is the answer of an API server that is not well.
func unavailable() error { return errors.New("etcdserver: request timed out") }

// These are the words for records, for what watches show late, and for what becomes of sources and events.

// wantWrites wants these patches to have been applied since a want last compared them, in any order, and no others: "web rolled", or "web recorded"
// if a patch writes a record alone.
func (s *scene) wantWrites(writes ...string) {
	s.Helper()
	var got []string
	for _, w := range s.writesSince(&s.seen) {
		if w.rolls {
			got = append(got, w.workload+" rolled")
		} else {
			got = append(got, w.workload+" recorded")
		}
	}
	s.wantAll("patched", writes, got)
}

// recordOf returns the record of a workload, by source.
func (s *scene) recordOf(name string) map[string]string {
	s.Helper()
	text, record := s.annotation(name, annotationRecord), make(map[string]string)
	if text == "" {
		return record
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		s.Fatalf("the record of %s: %v", name, err)
	}
	return record
}

// wantRecord wants the record of a workload to say that its pods have all of a source as it is now.
func (s *scene) wantRecord(name, source string) {
	s.Helper()
	if got, want := s.recordOf(name)[sourceNamed(source).String()], s.whole(source); got != want {
		s.Errorf("after %s, the record of %s says of %s: %q, want %q", s.elapsed(), name, source, got, want)
	}
}

// wantContent wants the record of a workload to have the content of a source, of whatever version.
func (s *scene) wantContent(name, source string) {
	s.Helper()
	if got, want := s.recordOf(name)[sourceNamed(source).String()], s.of(source).published.Fingerprint; !strings.HasPrefix(got, want+"@") {
		s.Errorf("after %s, the record of %s says of %s: %q, want %s", s.elapsed(), name, source, got, want)
	}
}

// whole returns the entry in the record of a workload whose pods have all of a source as it is now.
func (w *watcher) whole(name string) string {
	last := w.of(name).published
	entry := workload.RolledFor{Fingerprint: last.Fingerprint, Version: last.ChangedAt, UID: last.UID, Scope: workload.ScopeOf(nil)}
	if entry.Version == "" {
		entry.Version = workload.NoVersion
	}
	return entry.String()
}

// reserve returns a moment in the history of the cluster, for at.
func (c *cluster) reserve() (moment int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const enough = 20 // for what is written at that moment, and what follows from it
	moment = c.version
	c.version += enough
	return moment
}

// at writes something at an earlier moment: its resourceVersions are before those of everything since, and the watches show it only now.
func (c *cluster) at(moment int, write func()) {
	c.t.Helper()
	set := func(version int) (before int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		before, c.version = c.version, version
		return before
	}
	now := set(moment)
	write()
	set(now)
}
