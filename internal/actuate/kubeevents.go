package actuate

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// kubeEventQueue is the length of the queue of warnings, and of that of the others. When one is full, further ones are dropped and counted.
	kubeEventQueue = 4096
	// kubeEventPause is how long no other one must have come, because most follow a patch, and kubeEventPatience how long one waits for that.
	kubeEventPause    = 250 * time.Millisecond
	kubeEventPatience = 5 * time.Second
	// kubeEventRate and kubeEventBurst bound the writes per second.
	kubeEventRate    = 25
	kubeEventBurst   = 10
	kubeEventTimeout = 10 * time.Second
)

// kubeEvents writes Kubernetes Events about workloads. The recorder of client-go is not used because it drops bursts about many objects.
type kubeEvents struct {
	*surroundings
	limiter flowcontrol.RateLimiter
	// warnings go first, and are never dropped in favor of the others. queued has as many as both of them together.
	warnings, others chan waitingEvent
	queued           chan struct{}
	// latest is when the last one was queued, in nanoseconds of Unix time.
	latest atomic.Int64
}

// waitingEvent is a queued Kubernetes Event. It came at its FirstTimestamp.
type waitingEvent struct {
	*corev1.Event
	// first means that no other had come for a while before it.
	first bool
}

func newKubeEvents(s *surroundings) *kubeEvents {
	return &kubeEvents{
		surroundings: s, limiter: flowcontrol.NewTokenBucketRateLimiter(kubeEventRate, kubeEventBurst),
		warnings: make(chan waitingEvent, kubeEventQueue), others: make(chan waitingEvent, kubeEventQueue),
		queued: make(chan struct{}, 2*kubeEventQueue),
	}
}

// run writes until close is called, or the context is done. After hurry is done, those that the rate does not allow are dropped.
func (k *kubeEvents) run(ctx, hurry context.Context) {
	for range k.queued {
		if ctx.Err() != nil {
			return
		}
		var event waitingEvent
		select {
		case event = <-k.warnings:
		default:
			event = <-k.others
		}
		if !event.first {
			k.awaitPause(hurry, event.FirstTimestamp.Time)
		}
		if k.limiter.Wait(hurry) != nil && !k.limiter.TryAccept() {
			k.metrics.eventDropped.Add(ctx, 1)
			continue
		}
		k.create(ctx, event.Event)
	}
}

// close ends run. Nothing may be written any more.
func (k *kubeEvents) close() { close(k.queued) }

// awaitPause waits until none has come for a while, or until one that came at the given time has waited long enough.
func (k *kubeEvents) awaitPause(ctx context.Context, came time.Time) {
	for ctx.Err() == nil {
		now := k.options.Now()
		wait := min(time.Unix(0, k.latest.Load()).Add(kubeEventPause).Sub(now), came.Add(kubeEventPatience).Sub(now))
		if wait <= 0 {
			return
		}
		kube.Sleep(ctx, wait)
	}
}

func (k *kubeEvents) create(ctx context.Context, event *corev1.Event) {
	callCtx, cancel := context.WithTimeout(ctx, kubeEventTimeout)
	defer cancel()
	_, err := k.options.Client.CoreV1().Events(event.Namespace).Create(callCtx, event, metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		k.log.WarnContext(ctx, "writing a kubernetes event failed", "workload", event.InvolvedObject.Name,
			"namespace", event.Namespace, "err", err)
	}
}

// eventReasons has the types and reasons of the Kubernetes Events about outcomes. Skips and holds have an event only if their reason is loud.
var eventReasons = map[events.Verb]struct{ kind, reason string }{
	events.VerbStarted:   {corev1.EventTypeNormal, "Rolled"},
	events.VerbCompleted: {corev1.EventTypeNormal, "RolloutCompleted"},
	events.VerbFailed:    {corev1.EventTypeWarning, "RolloutFailed"},
	events.VerbHeld:      {corev1.EventTypeNormal, "RolloutHeld"},
	events.VerbSkipped:   {corev1.EventTypeWarning, "NotRolled"},
}

// report queues the Kubernetes Event of an outcome, if it has one.
func (k *kubeEvents) report(ctx context.Context, outcome events.Outcome) {
	if k.options.Reloader {
		k.tellAsReloader(ctx, outcome)
	}
	named, ok := eventReasons[outcome.Verb]
	decided := outcome.Verb == events.VerbSkipped || outcome.Verb == events.VerbHeld
	if !ok || decided && !plan.Loud(outcome.Reason) {
		return
	}
	if outcome.Reason == events.ReasonReloadedInPlace {
		named.reason = "ReloadedInPlace"
	}
	message := outcome.Reason
	if outcome.Message != "" {
		message += ": " + outcome.Message
	}
	k.write(ctx, outcome.Workload, named.kind, named.reason, message, tracedBy(outcome))
}

// tracedBy returns the annotations that lead from a Kubernetes Event to the trace of an outcome.
func tracedBy(outcome events.Outcome) map[string]string {
	annotations := map[string]string{}
	if outcome.Trace.Parent != "" {
		annotations[events.AnnotationTraceparent] = outcome.Trace.Parent
	}
	return annotations
}

func (k *kubeEvents) write(ctx context.Context, id events.Workload, eventType, reason, message string, annotations map[string]string) {
	about := corev1.ObjectReference{Namespace: id.Namespace, Name: id.Name, UID: types.UID(id.UID)}
	switch kind, ok := k.kinds.Named(id.Kind); {
	case ok:
		about.APIVersion, about.Kind = kind.APIVersion, kind.Title
	case id.Kind == forcesync.Kind:
		about.APIVersion, about.Kind = externalsecret.APIVersion, "ExternalSecret"
	default:
		return
	}
	now := k.options.Now()
	event := kube.Event{
		About: about, Controller: "keyturn.dev/actuator", Type: eventType, Reason: reason, Message: message, Annotations: annotations, At: now,
	}.Object()
	before := time.Unix(0, k.latest.Swap(now.UnixNano()))
	queue := k.others
	if eventType == corev1.EventTypeWarning {
		queue = k.warnings
	}
	select {
	case queue <- waitingEvent{event, now.Sub(before) >= kubeEventPause}:
		k.queued <- struct{}{}
	default:
		k.metrics.eventDropped.Add(ctx, 1)
	}
}

// maxProblems is how much is reported about one workload, in characters: its author could otherwise make the log line arbitrarily long.
const maxProblems = 1000

// problem is what is wrong with the annotations of a workload. An orphan is rolled itself although its controller should be, which may put that back.
type problem struct {
	text     string
	isOrphan bool
}

// reportProblems logs the problems of a workload and writes a Kubernetes Event about its annotations, once for each wording.
func (o *rollouts) reportProblems(ctx context.Context, w *workload.Workload) {
	texts := make([]string, 0, len(w.Problems))
	for _, err := range w.Problems {
		texts = append(texts, err.Error())
	}
	was, is := o.problems[w.Key()], problem{text: fmt.Sprintf("%.*s", maxProblems, strings.Join(texts, "; ")), isOrphan: w.IsOrphan()}
	if is == was {
		return
	}
	o.problems[w.Key()] = is
	if is.isOrphan && !was.isOrphan {
		o.log.WarnContext(ctx, "controller not known; rolling the workload itself", "workload", w.ID.String(), "namespace", w.ID.Namespace,
			"controller", w.Owner.Kind+"/"+w.Owner.Name)
	}
	if is.text != "" && is.text != was.text {
		o.log.WarnContext(ctx, "invalid annotation", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", is.text)
		o.kube.write(ctx, w.ID, corev1.EventTypeWarning, "InvalidAnnotation", is.text, nil)
	}
}
