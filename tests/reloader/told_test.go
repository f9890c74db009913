package reloader

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// listen returns the address of a service that passes on the bodies that it gets.
func listen(t *testing.T) (url string, bodies <-chan string) {
	t.Helper()
	got := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // A body that is cut off is not the expected one.
		got <- string(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func TestAnAlertIsSentForARoll(t *testing.T) {
	t.Parallel()
	url, bodies := listen(t)
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.startWith([]string{"ALERT_ON_RELOAD=true", "ALERT_SINK=slack", "ALERT_WEBHOOK_URL=" + url}, "--namespaces", r.namespace)
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	if body := testkit.Receive(t, "a call", bodies); !strings.Contains(body, "web") || !strings.Contains(body, "db") || strings.Contains(body, "two") {
		t.Errorf("the alert: got %q, want one with the names of the workload and the source, and no value", body)
	}
}

func TestAWebhookIsCalledInsteadOfARoll(t *testing.T) {
	t.Parallel()
	url, bodies := listen(t)
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.start("--webhook-url", url)
	before := r.writes("web")
	// At each call all is decided about the changes that were called about before.
	for _, password := range []string{"two", "three", "four"} {
		r.secret("db", map[string]string{"password": password})
		if body := testkit.Receive(t, "a call", bodies); body == "" {
			t.Error("the call has no body")
		}
	}
	if now := r.writes("web"); now != before {
		t.Errorf("web was rolled %d times, want none", now-before)
	}
}
