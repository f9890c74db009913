package notify

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// called is a webhook that records the bodies posted to it, and responds with its status.
type called struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []string
}

func newCalled(t *testing.T, status int) *called {
	t.Helper()
	c := &called{status: status}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/"+secretPath {
			t.Errorf("asked to %s %s, %v", r.Method, r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies = append(c.bodies, string(body))
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *called) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bodies)
}

// call runs a caller of the webhook with the given number of tries, until the returned running is stopped.
func (s *stream) call(webhook *called, tries int) *running {
	s.t.Helper()
	r := &running{done: make(chan struct{}), counters: newCounters(), log: &testkit.Log{}}
	c, err := NewCaller(CallOptions{URL: webhook.URL + "/" + secretPath, Logger: r.log.Logger(), Meter: r.counters.meter()})
	testkit.Must(s.t, err)
	c.tries, c.backoff = tries, func(int) time.Duration { return 10 * time.Millisecond }
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(s.t.Context())
	go func() {
		defer close(r.done)
		if err := c.Run(ctx, s.bus); err != nil {
			s.t.Error(err)
		}
	}()
	s.t.Cleanup(r.stop)
	testkit.Eventually(s.t, "it has its consumer", func() bool { return s.uncalled() >= 0 })
	return r
}

// uncalled returns how many events the caller has not finished, or -1 if it has no consumer.
func (s *stream) uncalled() int {
	return s.unfinished(events.StreamChanges, "webhook-"+testCluster)
}

// change publishes an event of a Secret.
func (s *stream) change(name string, verb events.Verb, mutate func(*events.Change)) {
	s.t.Helper()
	c := events.Change{
		Cluster: testCluster, Verb: verb, Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name},
		UID: "uid-" + name, ResourceVersion: "7", Time: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC),
		Fingerprint: "k1:" + strings.Repeat("a", 32),
	}
	if mutate != nil {
		mutate(&c)
	}
	natstest.Publish(s.t, func() error {
		_, err := s.bus.PublishChange(s.t.Context(), c, 0)
		return err
	})
}

func TestAWebhookIsCalledOnceForEachChangeOfWhatWasThere(t *testing.T) {
	s, webhook := newStream(t), newCalled(t, http.StatusNoContent)
	s.change("past", events.VerbChanged, nil)
	r := s.call(webhook, 3)
	s.change("found", events.VerbObserved, nil)
	s.change("new", events.VerbChanged, func(c *events.Change) { c.Created = true })
	s.change("db", events.VerbChanged, nil)
	s.change("ignored", events.VerbChanged, func(c *events.Change) { c.Ignore = true })
	testkit.Eventually(t, "every event is acknowledged", func() bool { return webhook.calls() >= 2 && s.uncalled() == 0 })
	r.stop()
	testkit.WantEqual(t, "bodies", []string{callBody, callBody}, webhook.bodies)
	testkit.WantEqual(t, "metrics", map[string]int64{"webhook-url/webhook/sent": 2}, r.counters.results(t))
}

func TestAWebhookThatFailsIsCalledAgainAlsoAfterARestart(t *testing.T) {
	s, webhook := newStream(t), newCalled(t, http.StatusNotFound)
	r := s.call(webhook, maxCalls)
	const changes = 20
	for i := range changes {
		s.change("db-"+strconv.Itoa(i), events.VerbChanged, nil)
	}
	testkit.Eventually(t, "it is called again and again", func() bool { return webhook.calls() > 2*changes })
	r.stop()
	s.change("later", events.VerbChanged, nil)
	testkit.Eventually(t, "every event waits", func() bool { return s.uncalled() == changes+1 })
	if strings.Contains(r.log.String(), secretPath) {
		t.Errorf("the log quotes the address: %s", r.log)
	}
	// Use another server: a request that was in flight when the caller ended may reach the first one at any time.
	again := newCalled(t, http.StatusOK)
	r = s.call(again, maxCalls)
	testkit.Eventually(t, "every event is acknowledged", func() bool { return s.uncalled() == 0 })
	r.stop()
	if got := again.calls(); got != changes+1 {
		t.Errorf("%d calls after the restart, want %d", got, changes+1)
	}
}

func TestACallThatIsGivenUpIsDeadLettered(t *testing.T) {
	s, webhook := newStream(t), newCalled(t, http.StatusInternalServerError)
	r := s.call(webhook, 3)
	s.change("db", events.VerbChanged, nil)
	testkit.Eventually(t, "the event is given up", func() bool { return webhook.calls() >= 3 && s.uncalled() == 0 })
	r.stop()
	givenUp := int64(webhook.calls() - 2) // It is delivered again, and given up again, if its dead letter has no answer in time.
	letters, err := s.js.Stream(t.Context(), events.StreamDeadLetters)
	testkit.Must(t, err)
	letter, err := letters.GetMsg(t.Context(), 1)
	testkit.Must(t, err)
	if got := letter.Header.Get("Keyturn-Reason"); got != events.ReasonWebhookFailed || strings.Contains(letter.Header.Get("Keyturn-Error"), secretPath) {
		t.Errorf("the dead letter has the header %v", letter.Header)
	}
	testkit.WantEqual(t, "metrics", map[string]int64{"webhook-url/webhook/retried": 2, "webhook-url/webhook/given-up": givenUp}, r.counters.results(t))
	testkit.WantEqual(t, "rejected", map[string]int64{events.ReasonWebhookFailed: givenUp}, r.counters.counts(t, "keyturn.events.rejected", "reason"))
}

func TestASecretInAStoreIsCalledFor(t *testing.T) {
	for verb, want := range map[events.Verb]bool{
		events.VerbRotated: true, events.VerbObserved: false, events.VerbDeleted: false, events.VerbSynced: false, events.VerbIssued: false,
	} {
		if got := isCalledFor(events.Change{Verb: verb}); got != want {
			t.Errorf("%s: got %t", verb, got)
		}
	}
}

func TestAnAddressThatCannotBeCalledIsRefusedWithoutQuotingIt(t *testing.T) {
	for _, address := range []string{secretPath, "ftp://x.example/" + secretPath, ":" + secretPath} {
		options := CallOptions{URL: address}
		err := options.Validate()
		if err == nil || strings.Contains(err.Error(), secretPath) {
			t.Errorf("got %v", err)
		}
	}
}
