// Package inplace asks the pods of a workload to reload. It lists them from the API server, and calls each at its own address. The requests have no
// content, and of the responses only the status is used.
package inplace

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// parallel is the maximum number of a workload's pods that are called at a time.
	parallel = 16
	// callTimeout bounds one call, podTimeout all calls of one pod, and reloadTimeout all calls for one workload.
	callTimeout, podTimeout, reloadTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute
)

var (
	// ErrStarting is returned if a pod that is not ready yet did not confirm.
	ErrStarting = errors.New("it is not ready")
	// ErrNotListed is returned if the pods could not be listed, but another attempt may succeed.
	ErrNotListed = errors.New("listing pods")

	errOthers     = errors.New("all pods with its labels are of ReplicaSets that are named for another Deployment")
	errAddress    = errors.New("it has no usable address of its own")
	errTimeout    = errors.New("it does not answer in time")
	errAllTimeout = errors.New("they do not all answer in time")
	errNoAnswer   = errors.New("it does not answer as a web server does")
)

// Dial connects to a pod.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Client asks pods to reload. Create one with New. It is safe for concurrent use.
type Client struct {
	client kubernetes.Interface
	dial   Dial
	tracer trace.Tracer
	// backoff contains the delays between attempts to call a pod, which may be starting.
	backoff wait.Backoff
}

// New returns a Client. It connects to pods directly, and ignores proxies in the environment. If dial is nil, it uses net.Dialer.DialContext.
func New(client kubernetes.Interface, tracer trace.Tracer, dial Dial) *Client {
	if dial == nil {
		dial = (&net.Dialer{Timeout: callTimeout / 2}).DialContext
	}
	// There are five attempts, in 15 seconds.
	return &Client{client: client, tracer: tracer, dial: dial, backoff: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 4}}
}

// Reload calls each of the pods until it responds with a 2xx status, and returns the number of pods. An error names the first pod that did not
// confirm; others may have. It wraps ErrStarting if that pod is not ready, and ErrNotListed if listing the pods may succeed later.
func (c *Client) Reload(ctx context.Context, pods Pods) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reloadTimeout, errAllTimeout)
	defer cancel()
	found, err := c.find(ctx, pods)
	if err != nil {
		return 0, err
	}
	if err := pods.Begin(); err != nil {
		return 0, err
	}
	// Ask pods that are not ready first: if one must be asked again later, the ready ones are not asked twice.
	starting := slices.DeleteFunc(slices.Clone(found), func(p pod) bool { return p.ready })
	ready := slices.DeleteFunc(slices.Clone(found), func(p pod) bool { return !p.ready })
	if err := c.callAll(ctx, starting, pods); err != nil {
		return 0, err
	}
	return len(found), c.callAll(ctx, ready, pods)
}

// callAll calls pods until each has responded, or one of them has failed to.
func (c *Client) callAll(ctx context.Context, found []pod, pods Pods) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	workqueue.ParallelizeUntil(ctx, parallel, len(found), func(i int) {
		err := c.callUntilAnswered(ctx, found[i], pods)
		if err != nil {
			err = c.judge(ctx, found[i], pods, err)
		}
		if err != nil {
			stop(err)
		}
	})
	return context.Cause(ctx)
}

// callUntilAnswered calls one pod until it responds, a limited number of times.
func (c *Client) callUntilAnswered(ctx context.Context, p pod, pods Pods) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	at := netip.AddrPortFrom(p.address, pods.Port).String()
	delays := c.backoff
	for attempt := 0; ; attempt++ {
		err := c.call(ctx, p, at, pods.Path, attempt)
		if err == nil || ctx.Err() != nil || delays.Steps == 0 || !kube.Sleep(ctx, delays.Step()) {
			return err
		}
	}
}

// call makes one attempt.
func (c *Client) call(ctx context.Context, p pod, at, path string, attempt int) error {
	ctx, span := c.tracer.Start(ctx, http.MethodPost, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.K8SPodName(p.name), semconv.HTTPRequestMethodPost, semconv.HTTPRequestResendCount(attempt)))
	defer span.End()
	err := c.post(ctx, span, at, path)
	if err != nil {
		span.SetStatus(codes.Error, "not reloaded")
		span.SetAttributes(semconv.ErrorType(err))
	}
	return err
}
