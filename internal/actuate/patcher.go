package actuate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/inplace"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// maxChanged is how often in a row a workload may change between the read and the patch before that counts as a failure, in about half a minute.
	maxChanged = 5
	// maxDenied is the longest time between attempts of a denied patch; maxDeniedRecord is that of one that only records.
	maxDenied, maxDeniedRecord = 10 * time.Minute, 6 * time.Hour
)

// patcher sends patches, a limited number at a time and at most one for each workload. The loop calls finished for each result.
type patcher struct {
	*term
	pods *inplace.Client
	// workers are PatchWorkers for patches, even if all wait for one namespace. reloaders are as many more that ask pods to reload.
	workers, reloaders *fair.Slots
	underWay           map[workload.Key]*task
	// background counts the tasks that use no worker.
	background int
	draining   bool
	running    sync.WaitGroup
	results    chan patchResult
}

func newPatcher(t *term) *patcher {
	o := &t.options
	alone := len(o.Namespaces) == 1
	return &patcher{
		term: t, pods: inplace.New(o.Client, o.Tracer, o.DialPod), workers: fair.NewSlots(o.PatchWorkers, alone),
		reloaders: fair.NewSlots(o.PatchWorkers, alone), underWay: make(map[workload.Key]*task), results: make(chan patchResult),
	}
}

// full reports whether no further patch may start, except those that ask pods to reload.
func (p *patcher) full() bool { return p.workers.Free() <= 0 }

func (p *patcher) hasRoom(namespace string) bool { return p.workers.MayTake(namespace) }

// workersOf returns the workers for a task that does not run in the background.
func (p *patcher) workersOf(r *task) *fair.Slots {
	if r.way.inPlace {
		return p.reloaders
	}
	return p.workers
}

func (p *patcher) idle() bool { return len(p.underWay) == p.background }

// busy reports whether a patch or a restore of the workload is in flight.
func (p *patcher) busy(key workload.Key) bool { return p.underWay[key] != nil }

// replaces reports whether a patch in flight will replace pods of the workload.
func (p *patcher) replaces(key workload.Key) bool {
	r := p.underWay[key]
	return r != nil && (r.rolls || r.way.inPlace) && r.workload.Progress.Pods > 0
}

// start sends a patch in a goroutine. If the task asks pods to reload, it first waits for their answers.
func (p *patcher) start(ctx context.Context, r *task) {
	p.underWay[r.key()] = r
	if r.background {
		p.background++
	} else {
		p.workersOf(r).Take(r.key().Namespace)
	}
	p.running.Go(func() {
		reloaded := r.reloaded
		if r.way.inPlace && reloaded == 0 {
			var err error
			if reloaded, err = p.reload(ctx, r); err != nil {
				p.results <- patchResult{task: r, err: err}
				return
			}
		}
		result := p.send(r.context(ctx), r)
		result.reloaded = reloaded
		p.results <- result
	})
}

// finished removes a patch from those in flight. Call it for each result.
func (p *patcher) finished(r *task) {
	delete(p.underWay, r.key())
	if r.background {
		p.background--
	} else {
		p.workersOf(r).Return(r.key().Namespace)
	}
}

// drain returns the results of the patches in flight. The channel is closed after the last one. Do not start patches after it.
func (p *patcher) drain() <-chan patchResult {
	p.draining = true
	go func() {
		p.running.Wait()
		close(p.results)
	}()
	return p.results
}

func (p *patcher) send(ctx context.Context, r *task) patchResult {
	spanCtx, span := p.options.Tracer.Start(ctx, "patch "+r.kind.Name, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(append(workloadAttributes(r.workload.ID), semconv.HTTPRequestMethodPatch)...)
		if r.attempts > 0 {
			span.SetAttributes(semconv.HTTPRequestResendCount(r.attempts))
		}
	}
	callCtx, cancel := context.WithTimeout(spanCtx, kube.PatchTimeout)
	defer cancel()
	id := r.workload.ID
	if r.forDeletion && p.isTerminating(callCtx, id.Namespace) {
		return patchResult{task: r, err: errTerminating}
	}
	result := patchResult{task: r}
	obj, err := r.kind.Objects(p.options.clients(), id.Namespace).Patch(callCtx, id.Name, r.patch)
	if errors.Is(err, workload.ErrUnrecorded) {
		result.unrecorded, err = err, nil
	}
	if err != nil {
		// If the workload was deleted or fails the patch's tests, the next attempt uses the state of the index at that time.
		failRequest(span, err)
		return patchResult{task: r, err: fmt.Errorf("patching %s in namespace %s: %w", id, id.Namespace, err)}
	}
	after, ok := p.index.Read(r.kind, obj)
	if !ok {
		return patchResult{task: r, err: fmt.Errorf("patching %s in namespace %s: the response is not a %s", id, id.Namespace, r.kind.Title)}
	}
	if r.rolls {
		if err := r.kind.Accepted(after, r.patch); err != nil {
			return patchResult{task: r, err: p.unroll(callCtx, r, after, err)}
		}
	}
	if result.unrecorded != nil {
		p.index.Keep(after.Key(), func(known *workload.Workload) *workload.Workload { return known.Keeping(after) })
	} else {
		p.index.Answer(after, r.rolls)
	}
	result.after, result.at = after, p.now()
	return result
}

// isDenied reports whether the API server denies a patch or the Job that it starts, or whether another client's Job has the name.
func isDenied(err error) bool {
	for _, denial := range []error{workload.ErrStripped, workload.ErrUnstarted, workload.ErrNameTaken} {
		if errors.Is(err, denial) {
			return true
		}
	}
	return kube.IsDenied(err)
}

// unroll corrects the record that a patch wrote without rolling the workload, given the workload after the patch. It returns the patch's error.
func (p *patcher) unroll(ctx context.Context, r *task, after *workload.Workload, err error) error {
	id := r.workload.ID
	stripped := fmt.Errorf("patching %s in namespace %s: %w", id, id.Namespace, err)
	patch, err := r.kind.Patch(after, workload.Write{
		Rolled: after.Unrolled(r.content, r.workload.Rolled), Before: r.workload,
	})
	if err != nil {
		return errors.Join(stripped, err)
	}
	for delays := kube.PatchBackoff(); ; {
		obj, err := r.kind.Objects(p.options.clients(), id.Namespace).Patch(ctx, id.Name, patch)
		if err == nil {
			if corrected, ok := p.index.Read(r.kind, obj); ok {
				p.index.Answer(corrected, false)
			}
			p.index.Uncount(after, r.workload)
			return stripped
		}
		if kube.HasChanged(err) {
			p.index.Answer(after, false)
			return stripped
		}
		if !kube.Sleep(ctx, delays.Step()) {
			p.index.Answer(after, false)
			return errors.Join(stripped, fmt.Errorf("correcting the record of %s in namespace %s: %w", id, id.Namespace, err))
		}
	}
}

// errTerminating means that no patch was sent because the workload's namespace is being deleted.
var errTerminating = errors.New("the namespace is being deleted")

// isTerminating reports whether a namespace is being deleted, in which case the API server refuses the dry run of creating an Event.
func (p *patcher) isTerminating(ctx context.Context, namespace string) bool {
	question := kube.Event{
		About:      corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: namespace},
		Controller: "keyturn.dev/actuator", Type: corev1.EventTypeNormal, Reason: "Deleted", Message: "Is the namespace being deleted?",
	}.Object()
	_, err := p.options.Client.CoreV1().Events(namespace).Create(ctx, question, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
