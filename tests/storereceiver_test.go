package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// lie returns an audit line that says something false about a path.
func lie(path, operation, response string) string {
	return `{"time":"2038-01-01T00:00:00Z","type":"response","auth":{"display_name":"nobody"},"request":{"id":"x","operation":"` + operation +
		`","mount_point":"secret/","mount_type":"kv","namespace":{"id":"root"},"path":"` + path + `"},"response":{"mount_type":"kv","data":` + response + "}}\n"
}

// askReceiver sends a request to the receiver, and returns the status of the answer.
func (s *storeRig) askReceiver(method, url, authorization, body string) int {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	testkit.Must(s, err)
	request.Header.Set("Authorization", authorization)
	response, err := (&http.Client{Timeout: patience}).Do(request)
	testkit.Must(s, err)
	response.Body.Close()
	return response.StatusCode
}

// postLines posts lines to the receiver, with the token of the audit device.
func (s *storeRig) postLines(lines string) {
	s.Helper()
	if status := s.askReceiver(http.MethodPost, s.receiver(), "Bearer "+auditToken, lines); status >= http.StatusMultipleChoices {
		s.Fatalf("the receiver refuses lines with status %d", status)
	}
}

func TestWhoeverPostsToTheReceiverMustShowTheToken(t *testing.T) {
	t.Parallel()
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.put("shop/db", "one")
	s.start()
	url := s.receiver()
	const bearer = "Bearer " + auditToken
	forged := lie("secret/data/shop/db", "update", `{"version":99,"created_time":"2038-01-01T00:00:00Z"}`)
	for _, tt := range []struct {
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
		{"a line that is false, with the token", http.MethodPost, url, bearer, forged, http.StatusNoContent},
	} {
		if got := s.askReceiver(tt.method, tt.url, tt.authorization, tt.body); got != tt.want {
			t.Errorf("%s: got status %d, want %d", tt.name, got, tt.want)
		}
	}
	s.put("shop/mail", "one")
	s.awaitVersion("shop/mail", "rotated", "create", 1)
	for _, event := range s.storeEvents() {
		if !strings.HasPrefix(event, "secret/shop/mail ") {
			t.Errorf("an event that nobody caused: %s", event)
		}
	}
	s.eventually("the refused lines are counted", func(context.Context) bool {
		return s.series(s.watcher, "keyturn_openbao_audit_lines_total", `result="refused"`) != ""
	})
}
