package actuate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
)

const (
	// kubeEventQueue is the length of the queue of warnings, and of that of other Events. When a queue is full, further ones are dropped and counted.
	kubeEventQueue = 4096
	// kubeEventPause is the pause that must follow an Event, as most follow a patch; kubeEventPatience limits the wait for such a pause.
	kubeEventPause    = 250 * time.Millisecond
	kubeEventPatience = 5 * time.Second
	// kubeEventRate and kubeEventBurst bound the writes per second.
	kubeEventRate    = 25
	kubeEventBurst   = 10
	kubeEventTimeout = 10 * time.Second
	// slowRollout is how long a rollout may take before an Event reports its start. Faster rollouts have only the Event about their end.
	slowRollout = time.Minute
	// maxEventName is the length to which a workload's name is cut in the name of an Event, which may have 253 bytes.
	maxEventName = 200
)

// kubeEvents writes Kubernetes Events about workloads. The recorder of client-go is not used because it drops bursts about many objects.
//
// Each Event costs the API server and etcd about half as much as the patch, so a rollout has only one, about its end. An Event that is written at the
// start and updated at the end would take two writes and the permission to patch Events, and kubectl describe does not show an Event about the
// source. A rollout that hangs gets a second Event after a minute, for those who describe it; until then, the pod template shows the cause.
type kubeEvents struct {
	*surroundings
	limiter flowcontrol.RateLimiter
	// warnings are written first, and a full queue of others never drops them. queued has as many elements as both together.
	warnings, others chan waitingEvent
	queued           chan struct{}
	// latest is when the last Event was queued, in nanoseconds of Unix time.
	latest atomic.Int64
}

// waitingEvent is a queued Kubernetes Event. It was queued at its FirstTimestamp or, if it is about a slow rollout, later.
type waitingEvent struct {
	*corev1.Event
	// first means that no other Event was queued for a while before it.
	first bool
}

func newKubeEvents(s *surroundings) *kubeEvents {
	return &kubeEvents{
		surroundings: s, limiter: flowcontrol.NewTokenBucketRateLimiter(kubeEventRate, kubeEventBurst),
		warnings: make(chan waitingEvent, kubeEventQueue), others: make(chan waitingEvent, kubeEventQueue),
		queued: make(chan struct{}, 2*kubeEventQueue),
	}
}

// run writes Events until close is called or the context is done. After hurry is done, Events that exceed the rate are dropped.
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

// close ends run. Do not write Events after it.
func (k *kubeEvents) close() { close(k.queued) }

// awaitPause waits until no Event was queued for a while, or until the one that was queued at the given time has waited long enough.
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
	isThere := event.Name != "" && apierrors.IsAlreadyExists(err) // An earlier leader has written it.
	if err != nil && !isThere && ctx.Err() == nil {
		k.log.WarnContext(ctx, "writing a kubernetes event failed", "workload", event.InvolvedObject.Name,
			"namespace", event.Namespace, "err", err)
	}
}

// eventReasons contains the types and reasons of the Kubernetes Events about outcomes. Skips and holds have an Event only if their reason is loud.
// The start of a rollout is part of the Event about its end, or reported by reportSlow.
var eventReasons = map[events.Verb]struct{ kind, reason string }{
	events.VerbCompleted: {corev1.EventTypeNormal, "RolloutCompleted"},
	events.VerbFailed:    {corev1.EventTypeWarning, "RolloutFailed"},
	events.VerbHeld:      {corev1.EventTypeNormal, "RolloutHeld"},
	events.VerbSkipped:   {corev1.EventTypeWarning, "NotRolled"},
}

// report queues the Kubernetes Event of an outcome, if it has one. Rolled is the text of the start of the rollout that has ended, empty if none has.
func (k *kubeEvents) report(ctx context.Context, outcome events.Outcome, rolled string) {
	if k.options.Reloader.On {
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
	message := textOf(outcome)
	switch {
	case rolled == "":
	case outcome.Reason != reasonRolledOut:
		message += "; " + rolled
	case outcome.Message != "":
		message = rolled + "; " + outcome.Message
	default: // The reason of the Event says so.
		message = rolled
	}
	k.write(ctx, outcome.Workload, kube.Event{
		Name: eventName(outcome), Type: named.kind, Reason: named.reason, Message: message, Annotations: tracedBy(outcome),
	})
}

// reportSlow queues the Event about the start of a slow rollout, with the time of the start.
func (k *kubeEvents) reportSlow(ctx context.Context, started events.Outcome) {
	k.write(ctx, started.Workload, kube.Event{
		Name: eventName(started), Type: corev1.EventTypeNormal, Reason: "Rolled", Message: textOf(started), Annotations: tracedBy(started),
		At: started.StartedAt,
	})
}

// textOf returns the reason and the message of an outcome.
func textOf(outcome events.Outcome) string {
	if outcome.Message == "" {
		return outcome.Reason
	}
	return outcome.Reason + ": " + outcome.Message
}

// eventName returns the name of the Event about a rollout, empty if the outcome is about none. All leaders use the same name, so that the API server
// refuses a duplicate of an earlier leader's Event. Whoever may create Events in a namespace can take the name first and so hide the Event, but not
// the outcome, the log line or the metrics.
func eventName(outcome events.Outcome) string {
	if outcome.Revision == "" {
		return ""
	}
	about := outcome.Workload.UID + "\n" + outcome.Revision + "\n" + string(outcome.Verb)
	if outcome.Verb != events.VerbStarted { // Another leader that finds the rollout has another reason.
		about += "\n" + outcome.Reason
	}
	sum, name := sha256.Sum256([]byte(about)), outcome.Workload.Name
	return strings.TrimRight(name[:min(len(name), maxEventName)], "-.") + "." + hex.EncodeToString(sum[:8])
}

// tracedBy returns the annotations that link a Kubernetes Event to the trace of an outcome.
func tracedBy(outcome events.Outcome) map[string]string {
	annotations := map[string]string{}
	if outcome.Trace.Parent != "" {
		annotations[events.AnnotationTraceparent] = outcome.Trace.Parent
	}
	return annotations
}

// write queues a Kubernetes Event about a workload. A zero time means now.
func (k *kubeEvents) write(ctx context.Context, id events.Workload, e kube.Event) {
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
	e.About, e.Controller = about, "keyturn.dev/actuator"
	if e.At.IsZero() {
		e.At = now
	}
	before := time.Unix(0, k.latest.Swap(now.UnixNano()))
	queue := k.others
	if e.Type == corev1.EventTypeWarning {
		queue = k.warnings
	}
	select {
	case queue <- waitingEvent{e.Object(), now.Sub(before) >= kubeEventPause}:
		k.queued <- struct{}{}
	default:
		k.metrics.eventDropped.Add(ctx, 1)
	}
}
