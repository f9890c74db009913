package inplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	// parallel is how many pods of a workload are called at a time.
	parallel = 16
	// callTimeout bounds one call.
	callTimeout = 10 * time.Second
	// tellTimeout bounds all calls for one workload.
	tellTimeout = 5 * time.Minute
	// maxHeaders and maxBody are how much of an answer is taken, in bytes. Nothing of it is read but the status.
	maxHeaders, maxBody = 16 << 10, 64 << 10
)

// Dial connects to a pod.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Teller tells pods to read their files again. Make one with New. It is safe for concurrent use.
type Teller struct {
	client kubernetes.Interface
	http   *http.Client
	tracer trace.Tracer
	// backoff returns the delays between attempts to call a pod.
	backoff func() wait.Backoff
}

// New returns a Teller. It connects to pods directly, whatever proxy the environment names. Dial is net.Dialer.DialContext if it is nil.
func New(client kubernetes.Interface, tracer trace.Tracer, dial Dial) *Teller {
	if dial == nil {
		dial = (&net.Dialer{Timeout: callTimeout / 2}).DialContext
	}
	return &Teller{
		client: client, tracer: tracer, backoff: callBackoff,
		http: &http.Client{
			Timeout:       callTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders, Proxy: nil},
		},
	}
}

// callBackoff returns the delays between the five attempts to call a pod, 15 seconds together: it may be starting.
func callBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 4}
}

// Tell calls each of the pods until it answers with a status of 2xx, and returns how many there are. An error names the first that could not be
// told: then others may have been.
func (t *Teller) Tell(ctx context.Context, pods Pods) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	found, err := t.find(ctx, pods)
	if err != nil {
		return 0, err
	}
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
			if err := t.tell(ctx, p, pods); err != nil && !t.isGone(ctx, p, pods) {
				stop(fmt.Errorf("pod %s: %w", p.name, err))
			}
		})
	}
	calling.Wait()
	return len(found), context.Cause(ctx)
}

// tell calls one pod, with several attempts.
func (t *Teller) tell(ctx context.Context, p pod, pods Pods) error {
	target := "http://" + netip.AddrPortFrom(p.address, pods.Port).String() + pods.Path
	backoff := t.backoff()
	for attempt := 0; ; attempt++ {
		err := t.call(ctx, p, target, attempt)
		if err == nil || ctx.Err() != nil || backoff.Steps == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff.Step()):
		}
	}
}

// call makes one attempt.
func (t *Teller) call(ctx context.Context, p pod, target string, attempt int) error {
	ctx, span := t.tracer.Start(ctx, http.MethodPost, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.K8SPodName(p.name), semconv.HTTPRequestMethodPost, semconv.HTTPRequestResendCount(attempt)))
	defer span.End()
	err := t.post(ctx, span, target)
	if err != nil {
		span.SetStatus(codes.Error, "not told")
		span.SetAttributes(semconv.ErrorType(err))
	}
	return err
}

// statusError is an answer that is no success.
type statusError int

func (e statusError) Error() string { return "it answers with the status " + strconv.Itoa(int(e)) }

func (t *Teller) post(ctx context.Context, span trace.Span, target string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	request.Header.Set("User-Agent", "keyturn")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header))
	response, err := t.http.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	span.SetAttributes(semconv.HTTPResponseStatusCode(response.StatusCode))
	// It may still be at work while it answers.
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return statusError(response.StatusCode)
	case err != nil:
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// withoutURL returns what is wrong with a call. An error of net/http repeats the URL, and of an answer that is none what it begins with.
func withoutURL(err error) error {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return errTimeout
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &op):
		return op
	}
	return errNoAnswer
}

var (
	errTimeout  = errors.New("it does not answer in time")
	errNoAnswer = errors.New("it does not answer as a web server does")
)
