package tests

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// mailbox is a service that messages are posted to.
type mailbox struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	posts  []post
}

// post is a request to a mailbox.
type post struct{ Path, ContentType, Body string }

// newMailbox starts one that answers with the status.
func newMailbox(t *testing.T, status int) *mailbox {
	t.Helper()
	m := &mailbox{status: status}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.posts = append(m.posts, post{r.URL.Path, r.Header.Get("Content-Type"), string(body)})
		w.WriteHeader(m.status)
	}))
	t.Cleanup(m.Close)
	return m
}

// answer sets the status of what is posted from now on.
func (m *mailbox) answer(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

// received returns what was posted, in its order.
func (m *mailbox) received() []post {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.posts)
}
