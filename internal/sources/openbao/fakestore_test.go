package openbao

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeStore answers like a store, for faults and for what Vault lacks. It uses no network, so that tests can run in a bubble.
type fakeStore struct {
	mu      sync.Mutex
	answers map[string]func(r *http.Request) (status int, body string)
	asked   []string
}

func newFakeStore(mounts string) *fakeStore {
	f := &fakeStore{answers: map[string]func(*http.Request) (int, string){}}
	f.say("sys/internal/ui/mounts", http.StatusOK, `{"data":{"secret":`+mounts+`}}`)
	f.say("auth/token/lookup-self", http.StatusForbidden, `{"errors":["permission denied"]}`)
	return f
}

// say sets the answer for "[namespace@]path[?list|?scan]".
func (f *fakeStore) say(request string, status int, body string) {
	f.do(request, func(*http.Request) (int, string) { return status, body })
}

func (f *fakeStore) do(request string, answer func(*http.Request) (int, string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = answer
}

// times returns how often a request was made.
func (f *fakeStore) times(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, asked := range f.asked {
		if asked == request {
			n++
		}
	}
	return n
}

func (f *fakeStore) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.URL.Path[len("/v1/"):]
	if namespace := r.Header.Get("X-Vault-Namespace"); namespace != "" {
		name = namespace + "@" + name
	}
	for _, query := range []string{"list", "scan"} {
		if r.URL.Query().Has(query) {
			name += "?" + query
		}
	}
	f.mu.Lock()
	f.asked = append(f.asked, name)
	answer := f.answers[name]
	f.mu.Unlock()
	status, body := http.StatusNotFound, `{"errors":[]}`
	if answer != nil {
		status, body = answer(r)
	}
	if status == 0 {
		return nil, fmt.Errorf("dialing: %w", io.ErrUnexpectedEOF)
	}
	return response(r, status, body), nil
}

// response returns an answer of a store.
func response(r *http.Request, status int, body string) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	recorder.WriteHeader(status)
	io.WriteString(recorder, body) //nolint:errcheck // a recorder takes all
	response := recorder.Result()
	response.Request = r
	return response
}

const (
	kv2 = `{"secret/":{"type":"kv","options":{"version":"2"}}}`
	// withToken starts a configuration of a store that can be asked.
	withToken = "stores: [{name: main, address: 'http://bao', auth: {token: canary-token}, poll: "
)

// inBubble runs a feed of the fake store in a bubble.
func inBubble(t *testing.T, config string, f *fakeStore, change func(*Options), test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config, func(o *Options) {
			o.Transport = f
			if change != nil {
				change(o)
			}
		})
		stop := r.start(t)
		defer stop()
		test(t, r)
		if log := r.log.String(); bytes.Contains([]byte(log), []byte("canary")) {
			t.Errorf("the log has a secret:\n%s", log)
		}
	})
}

// after waits on the bubble's clock, and then until every goroutine is blocked.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// seen returns the last observation of each path.
func (r *rig) seen() map[string]Observation {
	seen := map[string]Observation{}
	for len(r.sink) > 0 {
		o := <-r.sink
		seen[o.Path.Full()] = o
	}
	return seen
}

func paths(seen map[string]Observation) []string { return slices.Sorted(maps.Keys(seen)) }

// metadataOf returns an answer about a secret with a single version.
func metadataOf(version int, created string) string {
	return fmt.Sprintf(`{"data":{"current_version":%d,"versions":{"%d":{"created_time":%q,"deletion_time":"","destroyed":false}}}}`, version, version, created)
}
