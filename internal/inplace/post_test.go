package inplace

import (
	"bytes"
	"context"
	"io"
	"log" //nolint:depguard // net/http writes to it.
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAPodThatFailsIsCalledAgainAndThenNamed(t *testing.T) {
	const secret = "hunter2-in-the-answer"
	status := func(code int) func(string, http.ResponseWriter, *http.Request) {
		return func(_ string, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/"+secret)
			http.Error(w, secret, code)
		}
	}
	for name, tt := range map[string]struct {
		ip     string
		answer func(string, http.ResponseWriter, *http.Request)
		want   string
	}{
		"its configuration is not valid": {"10.0.0.1", status(http.StatusInternalServerError), "pod web-a: it answers with the status 500"},
		"it redirects":                   {"10.0.0.1", status(http.StatusFound), "pod web-a: it answers with the status 302"},
		"nobody listens":                 {"10.0.0.99", accept, "pod web-a: dial tcp: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: tt.answer}
			spans := tracetest.NewSpanRecorder()
			c := clientOf(t, n, spans, podOf("web-a", tt.ip, nil))
			_, err := c.Reload(t.Context(), webPods())
			testkit.WantError(t, err, tt.want)
			if got := len(spans.Ended()); got != 3 {
				t.Errorf("it is called %d times, want 3", got)
			}
			for _, span := range spans.Ended() {
				for _, attribute := range span.Attributes() {
					if strings.Contains(attribute.Value.AsString()+span.Status().Description, secret) {
						t.Errorf("a span has what the pod answered: %v", attribute)
					}
				}
			}
		})
	}
}

// says returns the error of asking a pod to reload that sends said as soon as somebody connects.
func says(t *testing.T, said string) error {
	t.Helper()
	var serving sync.WaitGroup
	defer serving.Wait()
	c := New(fake.NewClientset(podOf("web-a", "10.0.0.1", nil)), noop.NewTracerProvider().Tracer(""),
		func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			serving.Go(func() { _, _ = io.Copy(io.Discard, server) })
			serving.Go(func() {
				_, _ = io.WriteString(server, said)
				_ = server.Close()
			})
			return client, nil
		})
	c.backoff = wait.Backoff{}
	_, err := c.Reload(t.Context(), webPods())
	return err
}

func TestNothingThatAPodSaysIsReportedOrLogged(t *testing.T) {
	const secret = "hunter2-in-the-answer"
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(io.Discard) })
	for name, said := range map[string]string{
		"a banner":            "220 " + secret + "\r\n",
		"a malformed trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n" + secret + "\r\n\r\n",
		"a long header":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat(secret, maxHeaders) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.WantError(t, says(t, said), "pod web-a: it does not answer as a web server does")
		})
	}
	if logged.Len() > 0 {
		t.Errorf("logged is %.200s", logged.String())
	}
}

func TestAnAnswerMayBeLongOrComeAfterOthers(t *testing.T) {
	for name, said := range map[string]string{
		"a body that has no end": "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 2*maxBody),
		"it is at work first":    "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.WantError(t, says(t, said), "")
		})
	}
}
