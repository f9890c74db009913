//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

// These are the words for what workloads wait for: waves, canaries, and others that failed.

// bakeTime is how long the pods of a canary must stay ready by default, and bakeCheck is longer than it takes until that is noticed.
const bakeTime, bakeCheck = 5 * time.Minute, 15 * time.Second

// onHold puts a workload on hold, and letGo ends that.
var (
	onHold = annotated(events.AnnotationHold, "tofu apply")
	letGo  = without(events.AnnotationHold)
)

// inWave puts a workload in a wave.
func inWave(number int) aspect { return annotated("keyturn.dev/wave", strconv.Itoa(number)) }

// mountsSecret lets the pods read all of a Secret as files.
func mountsSecret(name string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		volume, container := fmt.Sprintf("files-%d", len(pod.Spec.Volumes)), &pod.Spec.Containers[0]
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
		})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/etc/" + volume})
	}
}

// begin has sources observed and an actuator started, and lets the records of the workloads be completed.
func (s *scene) begin(sources ...string) *running {
	s.Helper()
	s.observe(sources...)
	r := s.start()
	s.pass(time.Minute)
	return r
}

// beginWeb begins with the workload web, which reads all of secret/db.
func (s *scene) beginWeb(more ...aspect) *running {
	s.Helper()
	s.workload("web", reading("secret/db", more...)...)
	return s.begin("secret/db")
}

// beginReading begins with the workload web, which reads these sources: all of them, or one key.
func (s *scene) beginReading(sources ...string) *running {
	s.Helper()
	s.workload("web", auto, reads(sources...))
	var names []string
	for _, source := range sources {
		name, _, _ := strings.Cut(strings.TrimSuffix(source, "?"), "#")
		names = append(names, name)
	}
	return s.begin(names...)
}

// atRest is begin, and lets everything come to rest.
func (s *scene) atRest(sources ...string) *running {
	s.Helper()
	s.observe(sources...)
	r := s.start()
	s.rest()
	return r
}

// readers makes workloads that read all of a source.
func (s *scene) readers(source string, names ...string) {
	s.Helper()
	for _, name := range names {
		s.workload(name, auto, reads(source))
	}
}

// settled is set, and waits until the change is decided.
func (s *scene) settled(name, key, value string, how ...func(*events.Change)) {
	s.Helper()
	s.set(name, key, value, how...)
	s.settle()
}

// startFor is start, and lets time pass.
func (s *scene) startFor(d time.Duration) {
	s.Helper()
	s.start()
	s.pass(d)
}

// restartFor is restart, and lets time pass.
func (s *scene) restartFor(d time.Duration) {
	s.Helper()
	s.restart()
	s.pass(d)
}

// rotate gives secret/db a new password, and wants these workloads to be rolled for it, and no others.
func (s *scene) rotate(password string, workloads ...string) {
	s.Helper()
	s.settled("secret/db", "password", password)
	s.wantRolls(workloads...)
}

// passUntil lets time pass until a moment that is to come.
func (s *scene) passUntil(moment time.Time) { s.pass(time.Until(moment)) }

// whoRolled returns the workloads that were rolled since a want compared them, in the order of their rolls. It counts as a want.
func (s *scene) whoRolled() []string {
	var names []string
	for _, w := range s.writesSince(&s.seen) {
		if w.rolls {
			names = append(names, w.workload)
		}
	}
	return names
}

// wantAmongTold wants these outcomes to be among those that were told since the last want.
func (s *scene) wantAmongTold(outcomes ...string) {
	s.Helper()
	told := s.told()
	for _, outcome := range outcomes {
		if !slices.Contains(told, outcome) {
			s.Errorf("after %s, nobody is told %q, but %q", s.elapsed(), outcome, told)
		}
	}
}

// wantSaid wants the message of the last outcome of web with a reason to have a text.
func (s *scene) wantSaid(reason, text string) {
	s.Helper()
	var message string
	for _, outcome := range s.outcomesOf("web") {
		if outcome.Reason == reason {
			message = outcome.Message
		}
	}
	if !strings.Contains(message, text) {
		s.Errorf("after %s, it is told that %q, want a text with %q", s.elapsed(), message, text)
	}
}

// scale sets how many pods a Deployment is to have. How many it has is up to the method pods.
func (c *cluster) scale(name string, pods int32) {
	c.t.Helper()
	c.alter(name, func(d *appsv1.Deployment) { d.Spec.Replicas = &pods })
}

// pauseRollout pauses a Deployment, as `kubectl rollout pause` does.
func (c *cluster) pauseRollout(name string) {
	c.t.Helper()
	c.alter(name, func(d *appsv1.Deployment) { d.Spec.Paused = true })
}

// loosen lets the next rollout of a stalled workload make progress, and leaves the one that is under way as it is.
func (c *cluster) loosen(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled[name] = false
}

// repair replaces what a Deployment was rolled to by a pod template that works, as a person does, and removes its record.
func (c *cluster) repair(name string) {
	c.t.Helper()
	c.loosen(name)
	c.alter(name, func(d *appsv1.Deployment) {
		delete(d.Annotations, "keyturn.dev/rolled")
		d.Spec.Template.Annotations, d.Spec.Template.Labels = nil, map[string]string{"version": "2"}
	})
}

// namespaceSays sets the annotations of a namespace, none if nil.
func (c *cluster) namespaceSays(name string, annotations map[string]string) {
	c.t.Helper()
	c.rewrite(corev1.SchemeGroupVersion.WithResource("namespaces"), "", name, "", func(object runtime.Object) {
		metaOf(object).SetAnnotations(annotations)
	})
}

// These are the words for when people let workloads roll: holds, windows, intervals and limits.

// outcomesOf returns all outcomes of a workload that were told, the oldest first.
func (s *scene) outcomesOf(name string) []events.Outcome {
	s.Helper()
	return slices.DeleteFunc(s.outcomesSoFar(), func(o events.Outcome) bool { return nameOf(o.Workload) != name })
}

// lastOf returns the last outcome of a workload.
func (s *scene) lastOf(name string) events.Outcome {
	s.Helper()
	outcomes := s.outcomesOf(name)
	if len(outcomes) == 0 {
		s.Fatalf("after %s, nothing was told of %s", s.elapsed(), name)
	}
	return outcomes[len(outcomes)-1]
}

// wantLast wants the last outcome of a workload to be one, "held on-hold", and its message to have a text.
func (s *scene) wantLast(name, outcome, text string) {
	s.Helper()
	last := s.lastOf(name)
	if got := string(last.Verb) + " " + last.Reason; got != outcome || !strings.Contains(last.Message, text) {
		s.Errorf("after %s, the last outcome of %s is %s: %s; want %s: %s", s.elapsed(), name, got, last.Message, outcome, text)
	}
}

// heldUntil returns the time until which a workload is held, by its last outcome.
func (s *scene) heldUntil(name string) time.Time {
	s.Helper()
	last := s.lastOf(name)
	_, text, _ := strings.Cut(last.Message, ": until ")
	text, _, _ = strings.Cut(text, ": ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || last.Verb != events.VerbHeld {
		s.Fatalf("after %s, %s is %s until no time: %s", s.elapsed(), name, last.Verb, last.Message)
	}
	return at
}

// wantHeldUntilWindow wants a workload to be held until its own moment in a window that opens at a time: within three minutes after that. It is later
// only in windows of more than an hour.
func (s *scene) wantHeldUntilWindow(name string, opens time.Time) {
	s.Helper()
	s.wantLast(name, "held window-closed", "")
	if until := s.heldUntil(name); until.Before(opens) || until.After(opens.Add(3*time.Minute)) {
		s.Errorf("%s is held until %s, want %s and a moment", name, until, opens)
	}
}

// wantRolledForLast wants the last roll of a workload to have been for the last events of these sources, and for nothing else.
func (s *scene) wantRolledForLast(name string, sources ...string) {
	s.Helper()
	var want, got []string
	for _, source := range sources {
		want = append(want, s.of(source).published.ID())
	}
	for _, outcome := range s.outcomesOf(name) {
		if outcome.Verb != events.VerbStarted {
			continue
		}
		got = nil
		for _, cause := range outcome.Sources {
			got = append(got, cause.Event)
		}
	}
	s.wantAll(name+" was last rolled for", want, got)
}
