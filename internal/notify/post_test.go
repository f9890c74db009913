package notify

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func posterTo(t *testing.T, address string) *poster {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	p := newPoster(u, newClient(nil))
	p.now = func() time.Time { return time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC) }
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

func TestPostTellsWhatToRepeatAndWhen(t *testing.T) {
	const sent, again, refused = "sent", "again", "refused"
	for _, tt := range []struct {
		status      int
		after, want string
		delay       time.Duration
	}{
		{status: 200, want: sent},
		{status: 302, want: refused}, // A redirect is not followed.
		{status: 400, want: refused},
		{status: 408, want: again},
		{status: 429, after: "7", want: again, delay: 7 * time.Second},
		{status: 503, after: "Sat, 14 Mar 2026 15:01:00 GMT", want: again, delay: time.Minute},
		{status: 503, after: "Sat, 14 Mar 2026 14:00:00 GMT", want: again},
		{status: 429, after: "99999999999", want: again, delay: maxRetryAfter},
		{status: 503, after: "99999999999", want: again, delay: maxOutage},
		{status: 503, after: "-1", want: again},
		{status: 503, after: "soon", want: again},
	} {
		t.Run(fmt.Sprint(tt.status, tt.after), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/"+secretPath {
					t.Errorf("a redirect was followed to %s", r.URL.Path)
				}
				w.Header().Set("Retry-After", tt.after)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte("you have posted to " + r.URL.Path))
			}))
			defer server.Close()
			err := posterTo(t, server.URL+"/"+secretPath).post(t.Context(), []byte("{}"))
			got := again
			switch {
			case err == nil:
				got = sent
			case errors.Is(err, errRefused):
				got = refused
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
			var delay time.Duration
			if retry, ok := errors.AsType[*retryAfterError](err); ok {
				delay = retry.after
			}
			if delay != tt.delay {
				t.Errorf("it asks for %s, want %s", delay, tt.delay)
			}
			if err != nil && strings.Contains(err.Error(), secretPath) {
				t.Errorf("the error quotes the address or the answer: %v", err)
			}
		})
	}
}

func TestPostHidesTheAddressOfAServiceThatIsAway(t *testing.T) {
	server := httptest.NewServer(nil)
	address := server.URL + "/" + secretPath + "?token=" + secretPath
	server.Close()
	for _, address := range []string{address, strings.Replace(address, "http:", "https:", 1), strings.Replace(address, "//", "//user:"+secretPath+"@", 1)} {
		err := posterTo(t, address).post(t.Context(), []byte("{}"))
		if err == nil || errors.Is(err, errRefused) {
			t.Fatalf("got %v, want an error that a later try may not have", err)
		}
		if strings.Contains(err.Error(), secretPath) {
			t.Errorf("the error quotes the address: %v", err)
		}
	}
}
