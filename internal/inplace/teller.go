package inplace

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/backoff"
)

const (
	// parallel is how many pods of a workload are called at a time.
	parallel = 16
	// callTimeout bounds one call, podTimeout all calls of one pod, and tellTimeout all calls for one workload.
	callTimeout, podTimeout, tellTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute
)

// Dial connects to a pod.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Teller asks pods to reload. Create one with New. It is safe for concurrent use.
type Teller struct {
	client kubernetes.Interface
	dial   Dial
	tracer trace.Tracer
	// backoff returns the delays between attempts to call a pod.
	backoff func() wait.Backoff
}

// New returns a Teller. It connects to pods directly, and ignores proxies in the environment. If dial is nil, it uses net.Dialer.DialContext.
func New(client kubernetes.Interface, tracer trace.Tracer, dial Dial) *Teller {
	if dial == nil {
		dial = (&net.Dialer{Timeout: callTimeout / 2}).DialContext
	}
	return &Teller{client: client, tracer: tracer, dial: dial, backoff: callBackoff}
}

// callBackoff returns the delays between the five attempts to call a pod, 15 seconds in total. The pod may be starting.
func callBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 4}
}

// Tell calls each of the pods until it answers with a 2xx status, and returns the number of pods. An error names the first pod that could not be
// told. Others may have been told by then. The error wraps ErrStarting if that pod is not ready, and ErrNotListed if listing the pods may succeed
// later.
func (t *Teller) Tell(ctx context.Context, pods Pods) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tellTimeout, errAllTimeout)
	defer cancel()
	found, err := t.find(ctx, pods)
	if err != nil {
		return 0, err
	}
	// Tell pods that are not ready first: if one of them must be told later, the ready ones are not told twice.
	var starting, ready []pod
	for _, p := range found {
		if p.ready {
			ready = append(ready, p)
		} else {
			starting = append(starting, p)
		}
	}
	if err := t.tellAll(ctx, starting, pods); err != nil {
		return 0, err
	}
	return len(found), t.tellAll(ctx, ready, pods)
}

// tellAll calls pods until each has answered or one of them cannot be told.
func (t *Teller) tellAll(ctx context.Context, found []pod, pods Pods) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var calling sync.WaitGroup
	free := make(chan struct{}, parallel)
	for _, p := range found {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		calling.Go(func() {
			defer func() { <-free }()
			err := t.tell(ctx, p, pods)
			if err != nil {
				err = t.judge(ctx, p, pods, err)
			}
			if err != nil {
				stop(err)
			}
		})
	}
	calling.Wait()
	return context.Cause(ctx)
}

// tell calls one pod, with several attempts.
func (t *Teller) tell(ctx context.Context, p pod, pods Pods) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	at := netip.AddrPortFrom(p.address, pods.Port).String()
	delays := t.backoff()
	for attempt := 0; ; attempt++ {
		err := t.call(ctx, p, at, pods.Path, attempt)
		if err == nil || ctx.Err() != nil || delays.Steps == 0 {
			return err
		}
		if !backoff.Sleep(ctx, delays.Step()) {
			return err
		}
	}
}

// call makes one attempt.
func (t *Teller) call(ctx context.Context, p pod, at, path string, attempt int) error {
	ctx, span := t.tracer.Start(ctx, http.MethodPost, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.K8SPodName(p.name), semconv.HTTPRequestMethodPost, semconv.HTTPRequestResendCount(attempt)))
	defer span.End()
	err := t.post(ctx, span, at, path)
	if err != nil {
		span.SetStatus(codes.Error, "not reloaded")
		span.SetAttributes(semconv.ErrorType(err))
	}
	return err
}
