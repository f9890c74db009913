package actuate

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func kubeEventsOf(client *fake.Clientset, dropped func(context.Context)) *kubeEvents {
	options := testOptions()
	options.Client = client
	return newKubeEvents(options, workload.BuiltIn(), options.Logger, dropped)
}

func TestEachOutcomeIsToldToPeopleOrIsNot(t *testing.T) {
	tests := []struct {
		name    string
		outcome events.Outcome
		want    string // type, reason and message; empty: it is not reported
	}{
		{"that a rollout began", events.Outcome{Verb: events.VerbStarted, Reason: "content-changed", Message: "rolled for secret/db"}, "Normal Rolled content-changed: rolled for secret/db"},
		{"that it is complete", events.Outcome{Verb: events.VerbCompleted, Reason: "rolled-out"}, "Normal RolloutCompleted rolled-out"},
		{"that it failed", events.Outcome{Verb: events.VerbFailed, Reason: "deadline-exceeded", Message: "too slow"}, "Warning RolloutFailed deadline-exceeded: too slow"},
		{"that it waits", events.Outcome{Verb: events.VerbHeld, Reason: "lower-wave"}, "Normal RolloutHeld lower-wave"},
		{"but not that it waits for a place", events.Outcome{Verb: events.VerbHeld, Reason: "limit-reached"}, ""},
		{"that a key is missing", events.Outcome{Verb: events.VerbSkipped, Reason: "key-missing"}, "Warning NotRolled key-missing"},
		{"but not that nothing was to be done", events.Outcome{Verb: events.VerbSkipped, Reason: "same-content"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := kubeEventsOf(fake.NewClientset(), nil)
			test.outcome.Workload = events.Workload{Kind: "statefulset", Namespace: "shop", Name: "db", UID: "u"}
			test.outcome.Trace.Parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			k.report(t.Context(), test.outcome)
			event := k.waiting()
			if event == nil {
				if test.want != "" {
					t.Error("there is no Kubernetes Event")
				}
				return
			}
			if got := event.Type + " " + event.Reason + " " + event.Message; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db", UID: "u"}
			if diff := cmp.Diff(about, event.InvolvedObject); diff != "" {
				t.Errorf("it is about (-want +got):\n%s", diff)
			}
			if event.Annotations[events.AnnotationTraceparent] != test.outcome.Trace.Parent || event.Namespace != "shop" {
				t.Errorf("it is in %s, with %v", event.Namespace, event.Annotations)
			}
		})
	}
}

func TestWhatFindsNoPlaceIsDroppedAndCounted(t *testing.T) {
	dropped := 0
	k := kubeEventsOf(fake.NewClientset(), func(context.Context) { dropped++ })
	id := events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}
	for range kubeEventQueue + 3 {
		k.problem(t.Context(), id, "a")
	}
	k.problem(t.Context(), events.Workload{Kind: "pod", Namespace: "shop", Name: "web"}, "of a kind that is never rolled")
	if dropped != 3 || len(k.warnings) != kubeEventQueue {
		t.Errorf("%d were dropped and %d wait, want 3 and %d", dropped, len(k.warnings), kubeEventQueue)
	}
}

func TestWarningsGoBeforeWhatElseThereIsToTell(t *testing.T) {
	dropped := 0
	k := kubeEventsOf(fake.NewClientset(), func(context.Context) { dropped++ })
	id := events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}
	for range kubeEventQueue + 1 {
		k.report(t.Context(), events.Outcome{Verb: events.VerbStarted, Workload: id, Reason: "content-changed"})
	}
	k.report(t.Context(), events.Outcome{Verb: events.VerbFailed, Workload: id, Reason: "timed-out"})
	if dropped != 1 {
		t.Errorf("%d were dropped, want the one that found no place", dropped)
	}
	if got := k.waiting(); got.Type != corev1.EventTypeWarning {
		t.Errorf("the first is %s %s, want the warning", got.Type, got.Reason)
	}
	if got := k.waiting(); got.Type != corev1.EventTypeNormal {
		t.Errorf("the next is %s %s", got.Type, got.Reason)
	}
	k.report(t.Context(), events.Outcome{Verb: events.VerbFailed, Workload: id, Reason: "timed-out"})
	k.close()
	var left []string
	for event, ok := k.next(t.Context()); ok; event, ok = k.next(t.Context()) {
		left = append(left, event.Type)
	}
	if len(left) != kubeEventQueue || left[0] != corev1.EventTypeWarning || slices.Contains(left[1:], corev1.EventTypeWarning) {
		t.Errorf("%d are left when it ends, the first is a %s, want %d and a warning", len(left), left[0], kubeEventQueue)
	}
}

// waiting takes the event that is written next, nil if none waits.
func (k *kubeEvents) waiting() *corev1.Event {
	if len(k.warnings)+len(k.others) == 0 {
		return nil
	}
	event, _ := k.next(context.Background())
	return event.Event
}

// kubeEventBed is a writer of Kubernetes Events in a bubble, with a clock that the test sets.
type kubeEventBed struct {
	*kubeEvents
	tries, dropped atomic.Int32
	ended          chan struct{}
}

// startKubeEvents starts a writer, which ends as run does.
func startKubeEvents(ctx, hurry context.Context) *kubeEventBed {
	bed := &kubeEventBed{ended: make(chan struct{})}
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
		bed.tries.Add(1)
		return true, nil, errors.New("one that is refused holds up no other")
	})
	bed.kubeEvents = kubeEventsOf(client, func(context.Context) { bed.dropped.Add(1) })
	bed.now = time.Now
	go func() {
		defer close(bed.ended)
		bed.run(ctx, hurry)
	}()
	return bed
}

func (b *kubeEventBed) tell(ctx context.Context, count int) {
	for range count {
		b.problem(ctx, events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}, "a")
	}
}

// triesAfter waits, and returns how many writes were tried so far.
func (b *kubeEventBed) triesAfter(d time.Duration) int {
	<-time.After(d)
	synctest.Wait()
	return int(b.tries.Load())
}

func TestKubernetesEventsAreWrittenNoFasterThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		bed := startKubeEvents(ctx, ctx)
		bed.tell(ctx, kubeEventBurst+2*kubeEventRate)
		// The first needs no pause.
		const soon = 1 + kubeEventBurst
		if got := bed.triesAfter(kubeEventPause); got != soon {
			t.Errorf("at once %d are written, want one and a burst of %d", got, kubeEventBurst)
		}
		if got := bed.triesAfter(time.Second) - soon; got != kubeEventRate {
			t.Errorf("in the next second %d are written, want %d", got, kubeEventRate)
		}
		cancel()
		<-bed.ended
	})
}

func TestKubernetesEventsWaitWhileFurtherOnesComeButNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		bed := startKubeEvents(ctx, ctx)
		const every = kubeEventPause / 2
		begin := time.Now()
		told := 0
		for ; time.Since(begin) < kubeEventPatience; <-time.After(every) {
			bed.tell(ctx, 1)
			told++
			synctest.Wait()
			if got := bed.tries.Load(); got != 1 {
				t.Fatalf("after %s %d are written among those that come, want only the one that came after a pause", time.Since(begin), got)
			}
		}
		if got := bed.triesAfter(every); got == 1 {
			t.Errorf("after %s the second is not written", time.Since(begin))
		}
		if got := bed.triesAfter(kubeEventPause + time.Duration(told)*time.Second/kubeEventRate); got != told {
			t.Errorf("once no more come, %d are written, want all %d", got, told)
		}
		cancel()
		<-bed.ended
	})
}

func TestWhatCannotBeToldAtOnceIsDroppedWhenTheProgramEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leading, stop := context.WithCancel(t.Context())
		bed := startKubeEvents(t.Context(), leading)
		bed.tell(t.Context(), kubeEventBurst+3)
		stop()
		bed.close()
		<-bed.ended
		if tries, dropped := bed.tries.Load(), bed.dropped.Load(); tries != kubeEventBurst || dropped != 3 {
			t.Errorf("%d are written and %d dropped, want %d and 3", tries, dropped, kubeEventBurst)
		}
	})
}
