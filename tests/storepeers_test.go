package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/programs"
)

// lie returns an audit line that says something false about a path.
func lie(path, operation, response string) string {
	return `{"time":"2038-01-01T00:00:00Z","type":"response","auth":{"display_name":"nobody"},"request":{"id":"x","operation":"` + operation +
		`","mount_point":"secret/","mount_type":"kv","namespace":{"id":"root"},"path":"` + path + `"},"response":{"mount_type":"kv","data":` + response + "}}\n"
}

// rubbish has what a peer may send instead of a valid audit line, by description.
func rubbish() map[string]string {
	const version = `{"version":99,"created_time":"2038-01-01T00:00:00Z"}`
	return map[string]string{
		"nothing":               "",
		"empty lines":           "\n\n\n",
		"no JSON":               "GET / HTTP/1.1\r\nHost: keyturn\r\n\r\n",
		"zeros":                 strings.Repeat("\x00", 10_000) + "\n",
		"no request":            `{"type":"response","response":{"mount_type":"kv"}}` + "\n",
		"a null request":        `{"type":"response","request":null,"response":{"mount_type":"kv"},"operation":"update"}` + "\n",
		"other types":           `{"type":"response","request":{"operation":"update","mount_type":"kv","path":7,"headers":"no"}}` + "\n",
		"half a line":           lie("secret/data/shop/db", "update", version)[:200],
		"deep":                  `{"type":"response","mount_type":"kv","operation":"update","x":` + strings.Repeat("[", 20_000) + "\n",
		"a path with dots":      lie("secret/data/../../sys/seal", "update", version),
		"a path out of a mount": lie("data/shop/db", "update", version),
		"a path with no end":    lie("secret/data/"+strings.Repeat("x/", 5000)+"x", "update", version),
		"control characters":    lie(`secret/data/shop/\u0000\n\u001b[2J`, "update", version),
		"another engine":        strings.ReplaceAll(lie("secret/data/shop/db", "update", version), `"kv"`, `"pki"`),
		"a failed request":      lie("secret/data/shop/db", "update", `{"http_status_code":404}`),
		"a denied request":      strings.Replace(lie("secret/data/shop/db", "update", version), `"type"`, `"error":"permission denied","type"`, 1),
	}
}

func TestWhoeverPostsToTheReceiverMustShowTheToken(t *testing.T) {
	t.Parallel()
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.put("shop/db", "one")
	s.start()
	s.awaitEvent("shop/db", "observed  1")
	url := s.receiver()
	const bearer = "Bearer " + auditToken
	forged := lie("secret/data/shop/db", "update", `{"version":99,"created_time":"2038-01-01T00:00:00Z"}`)
	tests := []struct {
		name, method, url, authorization, body string
		want                                   int
	}{
		{"no token", http.MethodPost, url, "", forged, http.StatusUnauthorized},
		{"another token", http.MethodPost, url, "Bearer " + strings.Repeat("x", len(auditToken)), forged, http.StatusUnauthorized},
		{"half of the token", http.MethodPost, url, bearer[:len(bearer)-5], forged, http.StatusUnauthorized},
		{"an empty token", http.MethodPost, url, "Bearer ", forged, http.StatusUnauthorized},
		{"another scheme", http.MethodPost, url, "Basic " + auditToken, forged, http.StatusUnauthorized},
		{"no token for a store that is not there", http.MethodPost, url + "x", "", forged, http.StatusUnauthorized},
		{"a store that is not there", http.MethodPost, url + "x", bearer, forged, http.StatusNotFound},
		{"another path", http.MethodPost, "http://" + s.listen + "/", bearer, forged, http.StatusNotFound},
		{"another method", http.MethodGet, url, bearer, "", http.StatusMethodNotAllowed},
		{"a line that is too long", http.MethodPost, url, bearer, strings.Repeat("x", 8<<20), http.StatusNoContent},
	}
	for what, text := range rubbish() {
		tests = append(tests, struct {
			name, method, url, authorization, body string
			want                                   int
		}{what, http.MethodPost, url, bearer, text, http.StatusNoContent})
	}
	for _, tt := range tests {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.authorization != "" {
			request.Header.Set("Authorization", tt.authorization)
		}
		response, err := web.Do(request)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		response.Body.Close()
		if response.StatusCode != tt.want {
			t.Errorf("%s: got status %d, want %d", tt.name, response.StatusCode, tt.want)
		}
	}
	for _, text := range []string{"garbage\n", "POST /v1/audit/bao HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: " + bearer + "\r\n\r\nhalf"} {
		if err := sendTo(t.Context(), s.listen, text); err != nil {
			t.Fatal(err)
		}
	}
	s.put("shop/mail", "one")
	s.onlyTold("secret/shop/mail " + s.awaitVersion("shop/mail", "rotated", "create", 1))
	s.awaitMetric(`keyturn_openbao_audit_lines_total{`, `result="refused"`)
}

// onlyTold checks that there are these events and no others, in any order.
func (s *storeRig) onlyTold(want ...string) {
	s.Helper()
	got := s.storeEvents()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("events (-want +got):\n%s", diff)
	}
}

// awaitMetric waits until the watcher shows a line of metrics that begins so and has that in it.
func (s *storeRig) awaitMetric(begins, has string) {
	s.Helper()
	s.eventually("the watcher shows "+begins+has, func(ctx context.Context) bool {
		_, body, err := s.watcher.Get(ctx, "metrics", "/metrics")
		if err != nil {
			return false
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, begins) && strings.Contains(line, has) {
				return true
			}
		}
		return false
	})
}

// sendTo sends a text on a connection of its own and hangs up.
func sendTo(ctx context.Context, address, text string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = connection.Write([]byte(text))
	return err
}

// web is the tests' HTTP client.
var web = &http.Client{Timeout: patience}

// errRefused means that the receiver did not accept a request.
var errRefused = errors.New("the receiver refuses it")

// postLines posts lines to the receiver, with the token of the audit device.
func (s *storeRig) postLines(lines []byte) error {
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.receiver(), bytes.NewReader(lines))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+auditToken)
	response, err := web.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%w: %s", errRefused, response.Status)
	}
	return nil
}
