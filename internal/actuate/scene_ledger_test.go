//go:build !race

package actuate_test

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// soFar ends the first part of a play: what it has led to is not compared.
func (s *scene) soFar() {
	s.Helper()
	s.writesSince(&s.seen)
	s.told()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.notices = nil
}

// rest lets everything come to rest, and ends the first part of a play. It takes longer than HISTORY takes an outcome that is told twice for one.
func (s *scene) rest() {
	s.Helper()
	s.pass(11 * time.Minute)
	s.soFar()
}

// revisionOf keeps a workload as it is, as its ReplicaSet or its ControllerRevision does. What it returns brings that back as `kubectl rollout undo`
// does: of a Deployment with its annotations, of others the pod template alone. The pods of that revision are ready.
func (s *scene) revisionOf(name string) (undo func()) {
	s.Helper()
	was, template := partsOf(s.object(name))
	return func() {
		s.Helper()
		s.cluster.mu.Lock()
		s.stalled[name] = false
		s.cluster.mu.Unlock()
		s.writeAs("kubectl", name, func(now *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
			template.DeepCopyInto(pod)
			if parse(name).kind == "deployment" {
				now.Annotations = maps.Clone(was.Annotations)
			}
		})
	}
}

// withoutOurs removes everything from a workload that the actuator has written: nothing of that is in its manifest.
func withoutOurs(object *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
	maps.DeleteFunc(object.Annotations, func(name, _ string) bool { return isWrittenByUs(name) })
	withoutOurMarks(object, pod)
}

// withoutOurMarks removes from the pod template what the actuator has written.
func withoutOurMarks(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
	maps.DeleteFunc(pod.Annotations, func(name, _ string) bool { return isWrittenByUs(name) })
}

// underAnotherKey says of an event that its fingerprints are made with another key.
func underAnotherKey(change *events.Change) {
	another := func(print string) string {
		_, sum, _ := strings.Cut(print, ":")
		return "kffffffff:" + sum
	}
	change.Fingerprint = another(change.Fingerprint)
	for name, key := range change.Keys {
		if key.Fingerprint != "" {
			key.Fingerprint = another(key.Fingerprint)
			change.Keys[name] = key
		}
	}
}

// rotateInStore publishes a new version of a secret in a store, "secret/shop/db", as the watcher of a cluster does.
func (s *scene) rotateInStore(cluster, path string, version int64) {
	s.Helper()
	b, err := bus.Open(s.Context(), s.nc, cluster, nil)
	testkit.Must(s, err)
	mount, path, _ := strings.Cut(path, "/")
	at, revision := time.Now(), strconv.FormatInt(version, 10)
	change := events.Change{
		Cluster: cluster, Verb: events.VerbRotated, UID: "bao", ResourceVersion: strconv.FormatInt(at.UnixNano(), 10), Time: at, WrittenAt: at,
		Source:    events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: mount, Path: path}.Source(),
		Truncated: true, Store: &events.StoreState{Engine: events.EngineKV, Version: version, Revision: revision},
	}
	change.ChangedAt = change.ResourceVersion
	_, change.Fingerprint = fingerprints(map[string]string{"version": revision})
	publishOn(s.T, b, change)
}

// jetStream returns the interface of the streams.
func (s *scene) jetStream() jetstream.JetStream {
	s.Helper()
	js, err := jetstream.New(s.nc)
	testkit.Must(s, err)
	return js
}

// loseEvents removes the events of sources from the stream, or all events if no sources are named.
func (s *scene) loseEvents(names ...string) {
	s.Helper()
	stream, err := s.jetStream().Stream(s.Context(), events.StreamChanges)
	testkit.Must(s, err)
	if len(names) == 0 {
		natstest.Publish(s.T, func() error { return stream.Purge(s.Context()) })
	}
	for _, name := range names {
		subject := events.Subject("demo", sourceNamed(name))
		natstest.Publish(s.T, func() error { return stream.Purge(s.Context(), jetstream.WithPurgeSubject(subject)) })
	}
}

// remakeStream deletes the stream and makes it again without events.
func (s *scene) remakeStream() {
	s.Helper()
	js := s.jetStream()
	natstest.Publish(s.T, func() error { return js.DeleteStream(s.Context(), events.StreamChanges) })
	natstest.Publish(s.T, func() error { return bus.Declare(s.Context(), js, bus.Declared(1)) })
}
