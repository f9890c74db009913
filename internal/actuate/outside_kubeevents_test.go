//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// These are how Kubernetes Events are written: one that comes alone at once, others after such a pause in which none comes. Then so many are written
// at once, and so many in each second after that. So many find a place in the queue.
const (
	noticePause = 250 * time.Millisecond
	noticeBurst = 10
	noticeRate  = 25
	noticeQueue = 4096
)

// wantEvents wants these Kubernetes Events to have been written after the first n, in any order, and returns how many there are.
func (s *scene) wantEvents(n int, texts ...string) int {
	s.Helper()
	var got []string
	written := s.kubernetesEvents()
	for _, event := range written[n:] {
		got = append(got, textOf(event))
	}
	slices.Sort(got)
	slices.Sort(texts)
	if diff := cmp.Diff(texts, got); diff != "" {
		s.Errorf("Kubernetes Events after %s (-want +got):\n%s", s.elapsed(), diff)
	}
	return len(written)
}

func TestEachOutcomeIsToldToPeopleOrIsNot(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRolloutsPerNamespace = 1
		s.workload("web", auto, reads("secret/db"))
		s.workload("keyed", auto, reads("secret/keyed#password"))
		s.workload("busy", auto, reads("secret/busy"))
		s.begin("secret/db", "secret/keyed", "secret/busy")
		written := s.wantEvents(0)
		after := func(happens func()) func(texts ...string) {
			happens()
			s.settle()
			s.pass(10 * time.Second)
			return func(texts ...string) {
				s.Helper()
				written = s.wantEvents(written, texts...)
			}
		}

		after(func() { s.set("secret/db", "password", "two") })(
			"web Normal Rolled content-changed: rolled for secret/db (password)",
			"web Normal RolloutCompleted rolled-out",
		)
		after(func() {
			s.set("secret/db", "password", "three")
			s.set("secret/db", "password", "two")
		})() // Nothing was to be done.
		after(func() { s.unset("secret/keyed", "password") })(
			"keyed Warning NotRolled key-missing: " + plan.KeyMissing.Sentence(),
		)
		after(func() {
			s.stall("busy")
			s.set("secret/busy", "password", "two")
		})("busy Normal Rolled content-changed: rolled for secret/busy (password)")
		s.told()
		after(func() { s.set("secret/db", "password", "four") })() // That it waits for a place.
		s.wantTold("web held limit-reached")
	})
}

func TestAKubernetesEventIsAboutTheWorkloadAndLeadsToTheTrace(t *testing.T) {
	play(t, func(s *scene) {
		s.instrument()
		s.workload("statefulset/db", auto, reads("secret/db"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Second)
		outcomes, written := s.outcomesSoFar(), s.kubernetesEvents()
		if len(outcomes) != 2 || len(written) != 2 {
			s.Fatalf("there are %d outcomes and %d Kubernetes Events, want 2: it started and completed", len(outcomes), len(written))
		}
		for i, event := range written {
			about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: namespace, Name: "db"}
			about.UID = metaOf(s.object("statefulset/db")).GetUID()
			if diff := cmp.Diff(about, event.InvolvedObject); diff != "" {
				s.Errorf("it is about (-want +got):\n%s", diff)
			}
			trace := outcomes[i].Trace.Parent
			if trace == "" || event.Annotations[events.AnnotationTraceparent] != trace || event.Namespace != namespace {
				s.Errorf("%s is in %s, with %v, want the trace %s", event.Reason, event.Namespace, event.Annotations, trace)
			}
		}
	})
}

// annoy makes a workload have another invalid annotation, for which there is a Kubernetes Event, so many times at once.
func (s *scene) annoy(name string, times int) {
	s.Helper()
	for i := range times {
		s.edit(name, annotated("keyturn.dev/wave", "x"+strconv.Itoa(i)+"-"+s.elapsed().String()))
		s.pass(0)
	}
}

// tries is how many Kubernetes Events were written so far.
func (s *scene) tries() int {
	s.Helper()
	return len(s.kubernetesEvents())
}

func TestKubernetesEventsAreWrittenNoFasterThanAllowed(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web")
		s.begin()
		s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("one that is refused holds up no other")
		})
		s.annoy("web", noticeBurst+2*noticeRate)
		if got := s.tries(); got != 1 {
			s.Errorf("at once %d are written, want the one that needs no pause", got)
		}
		s.pass(noticePause)
		if got := s.tries(); got != 1+noticeBurst {
			s.Errorf("after the pause %d are written, want one and a burst of %d", got, noticeBurst)
		}
		s.pass(time.Second)
		if got := s.tries(); got != 1+noticeBurst+noticeRate {
			s.Errorf("in the next second %d are written, want %d", got-1-noticeBurst, noticeRate)
		}
	})
}

func TestWhatFindsNoPlaceIsDroppedAndCounted(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web")
		s.begin()
		s.annoy("web", 2+noticeQueue+3) // One is written, one waits for its turn.
		if got, _ := seen.measurements().value("keyturn.kubernetes.events.dropped", "", ""); got != 3 {
			s.Errorf("%d are dropped, want 3", got)
		}
		s.pass((noticeQueue + noticeRate) * time.Second / noticeRate)
		if got := s.tries(); got != 2+noticeQueue {
			s.Errorf("%d are written, want %d", got, 2+noticeQueue)
		}
	})
}
