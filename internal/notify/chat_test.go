package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// chat is a chat service that records the revisions in its messages.
type chat struct {
	*httptest.Server
	mu   sync.Mutex
	told []string
	// fault is the status of the next responses. Zero means 200.
	fault int
	// poison is the message that gets this status. Empty means all messages.
	poison string
	// hang blocks requests until it is closed. Nil means that it does not.
	hang  chan struct{}
	asked int
}

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *chat) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var message struct{ Text string }
	if err != nil || json.Unmarshal(body, &message) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.asked++
	hang, fault := c.hang, c.fault
	if c.poison != "" && c.poison != message.Text {
		fault = 0
	}
	c.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			// Returning would respond with 200, which the sender might still read.
			panic(http.ErrAbortHandler)
		}
	}
	if fault != 0 {
		w.WriteHeader(fault)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, message.Text)
}

func (c *chat) set(fault int, hang chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.hang = fault, hang
}

// choke makes the service fail for the message, and accept all others.
func (c *chat) choke(poison string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.poison = http.StatusInternalServerError, poison
}

func (c *chat) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *chat) messages() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.told...)
}

// sinkOf returns the configuration of a sink that posts only the revision.
func sinkOf(name string, c *chat, more string) string {
	return fmt.Sprintf("- {name: %s, type: slack, url: '%s/%s', template: '${revision}', rate: {perMinute: 6000}%s}\n", name, c.URL, secretPath, more)
}
