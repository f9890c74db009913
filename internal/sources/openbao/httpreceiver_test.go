package openbao

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	goodToken  = "0123456789abcdef0123"
	otherToken = "fedcba98765432100123"
)

func startReceiver(t *testing.T, config string, change func(*Options)) *rig {
	t.Helper()
	store := newFakeStore(kv2)
	store.say("secret/metadata/shop/db", http.StatusOK, metadataOf(2, "2026-11-20T11:03:06.591040173Z", ""))
	r := newRig(t, config, func(o *Options) {
		o.AuditListen, o.AuditTokenFile = "127.0.0.1:0", write(t, "tokens", goodToken+"\n\n main "+otherToken+"\n")
		o.Now, o.Transport = afterSamples(), store
		if change != nil {
			change(o)
		}
	})
	r.start(t)
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	return r
}

// post sends a body and returns the status of the answer.
func post(t *testing.T, client *http.Client, url, authorization string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	must(t, err)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

func newClientOf(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestTheAuditReceiverAnswers(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	one := lines["response create secret/data/shop/db"]
	long := bytes.Repeat([]byte("x"), maxLine)
	tests := []struct {
		name, path, authorization string
		body                      []byte
		want                      int
		looked                    bool // at the secret
		counts                    map[verdict]int64
	}{
		{name: "a line", path: "/v1/audit/main", authorization: "Bearer " + goodToken, body: one, want: 204, looked: true, counts: map[verdict]int64{used: 1}},
		{name: "with the other token", path: "/v1/audit/main", authorization: "bearer " + otherToken, body: one, want: 204, looked: true, counts: map[verdict]int64{used: 1}},
		{name: "without a token", path: "/v1/audit/main", body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "with a part of the token", path: "/v1/audit/main", authorization: "Bearer " + goodToken[1:], body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "with an empty token", path: "/v1/audit/main", authorization: "Bearer ", body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "by another scheme", path: "/v1/audit/main", authorization: "Basic " + goodToken, body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "of a store that is not there", path: "/v1/audit/other", authorization: "Bearer " + goodToken, body: one, want: 404},
		{
			name: "a write that is too long", path: "/v1/audit/main", authorization: "Bearer " + goodToken, want: 204,
			body:   bytes.Join([][]byte{append(bytes.Clone(one), long...), lines["response update secret/data/shop/db"]}, []byte("\n")),
			looked: true, counts: map[verdict]int64{dropped: 1, used: 1},
		},
		{
			// The line of a poll of a large mount: another poll would only cause another such line.
			name: "a scan that is too long", path: "/v1/audit/main", authorization: "Bearer " + goodToken, want: 204,
			body:   bytes.Join([][]byte{append(bytes.Clone(lines["response scan secret/detailed-metadata/"]), long...), one, nil}, []byte("\n")),
			looked: true, counts: map[verdict]int64{ignored: 1, used: 1},
		},
		{name: "more than is read", path: "/v1/audit/main", authorization: "Bearer " + goodToken, body: bytes.Repeat(long, maxBody/maxLine+1), want: 413, counts: map[verdict]int64{ignored: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := startReceiver(t, askOnly, nil)
			if got := post(t, newClientOf(t, nil), "http://"+r.address()+test.path, test.authorization, bytes.NewReader(test.body)); got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
			if test.looked {
				if o := r.next(t); o.Path.Path != "shop/db" || o.Version != 2 {
					t.Errorf("observed %+v, want what the store has", o)
				}
			}
			for _, result := range []verdict{used, ignored, malformed, refused, dropped} {
				if got := r.lines(t, result); got != test.counts[result] {
					t.Errorf("%d lines are %s, want %d", got, result, test.counts[result])
				}
			}
		})
	}
}

func TestTheAuditReceiverKeepsNoConnectionWithoutAToken(t *testing.T) {
	r := startReceiver(t, askOnly, nil)
	for _, test := range []struct {
		path, authorization string
		want                bool
	}{
		{"/v1/audit/main", "Bearer " + goodToken, false},
		{"/v1/audit/main", "", true},
		{"/", "", true},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address()+test.path, strings.NewReader("{}"))
		must(t, err)
		request.Header.Set("Authorization", test.authorization)
		response, err := newClientOf(t, nil).Do(request)
		must(t, err)
		if response.Body.Close(); response.Close != test.want {
			t.Errorf("status %d, and the connection ends: %t, want %t", response.StatusCode, response.Close, test.want)
		}
	}
}

const twoStores = "stores: [{name: one, address: 'http://one', auth: {token: a}}, {name: two, address: 'http://two', auth: {token: b}}]"

func TestTheAuditReceiverKnowsStoresByName(t *testing.T) {
	line := samples(t, "openbao-2.6.2.jsonl")["response create secret/data/shop/db"]
	r := startReceiver(t, twoStores, func(o *Options) {
		o.AuditTokenFile = write(t, "tokens", "one "+otherToken+"\ntwo "+goodToken+"\n")
	})
	client := newClientOf(t, nil)
	for path, want := range map[string]int{"/v1/audit/two": 204, "/v1/audit/one": 401, "/v1/audit": 404} {
		if got := post(t, client, "http://"+r.address()+path, "Bearer "+goodToken, bytes.NewReader(line)); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	if got := r.next(t); got.Path.Store != "two" || len(got.Servers) != 1 || got.Servers[0] != "http://two" {
		t.Errorf("%+v, want one of the store two", got)
	}
}

func TestAnswersDoNotWaitForTheSink(t *testing.T) {
	r := newRig(t, askOnly, func(o *Options) {
		o.AuditListen, o.AuditTokenFile = "127.0.0.1:0", write(t, "tokens", goodToken)
		o.Now, o.Transport = afterSamples(), newFakeStore(kv2)
	})
	// This sink does not return before the test ends.
	offered, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(offered) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.feed.Run(ctx, func(Observation) bool { first(); <-release; return true })
	}()
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	client, url := newClientOf(t, nil), "http://"+r.address()+"/v1/audit/main"
	lines, in := repeated(t, maxLooks+32), r.feed.pipelines[0].intake
	in.take(t.Context(), lines[16])
	testkit.Receive(t, "the sink is offered what was read", offered, r.log.String)
	for _, line := range lines[17:] {
		in.take(t.Context(), line)
	}
	for _, line := range lines[:16] {
		if got := post(t, client, url, "Bearer "+goodToken, bytes.NewReader(line)); got != http.StatusNoContent {
			t.Fatalf("status %d, want 204", got)
		}
	}
	if got := r.lines(t, dropped); got != 16 {
		t.Errorf("%d lines were dropped, want all that have no room", got)
	}
	cancel()
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestABodyThatStopsIsGivenUp(t *testing.T) {
	r := startReceiver(t, askOnly, nil)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address())
	must(t, err)
	io.WriteString(connection, "POST /v1/audit/main HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+goodToken+"\r\nContent-Length: 100\r\n\r\n{") //nolint:errcheck // the count tells
	connection.Close()
	testkit.Eventually(t, "it is counted", func() bool { return r.lines(t, malformed) == 1 })
}

// crowd is a receiver of the lines of two stores, without a network.
type crowd struct {
	one, two *intake
	handler  http.Handler
}

// newCrowd returns one in which the store two has room for lines, and the store one for those about that many paths.
func newCrowd(t *testing.T, room int) *crowd {
	t.Helper()
	c := &crowd{one: intakeOf(t, room), two: intakeOf(t, maxLooks)}
	c.one.store, c.two.store = "one", "two"
	tokens, err := newBearers(tokensOf(t, "one "+goodToken+"\ntwo "+goodToken), []string{"one", "two"})
	must(t, err)
	receiver := &httpReceiver{intakes: map[string]*intake{"one": c.one, "two": c.two}, bearers: tokens}
	c.handler = receiver.handler()
	return c
}

// post returns the status of the answer.
func (c *crowd) post(t *testing.T, store string, body io.Reader) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/audit/"+store, body)
	request.Header.Set("Authorization", "Bearer "+goodToken)
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, request)
	return answer.Code
}

func TestShippersWithoutRoomCostNobodyElseALine(t *testing.T) {
	c := newCrowd(t, 0)
	for range 2 * maxBodies {
		if got := c.post(t, "one", bytes.NewReader(bodyOf(2))); got != http.StatusServiceUnavailable {
			t.Errorf("status %d for a shipper, want 503", got)
		}
	}
	if got := c.post(t, "two", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.two.taken()) != 1 {
		t.Errorf("status %d for the device of the other store, want its line taken", got)
	}
	clear(c.one.looks.waiting)
	if got := c.post(t, "one", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.one.taken()) != 1 {
		t.Errorf("status %d for the device of the same store, once there is room, want its line taken", got)
	}
	if len(c.one.polls)+len(c.two.polls) > 0 {
		t.Error("a poll is requested, as for lines that are lost")
	}
}

func TestABodyBesideTooManyOthersIsRefusedAndPolledFor(t *testing.T) {
	for name, body := range map[string][]byte{"the line of a device": bodyOf(1), "the lines of a shipper": bodyOf(2)} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 10)
			for range maxBodies {
				c.one.bodies <- struct{}{}
			}
			if got := c.post(t, "one", bytes.NewReader(body)); got != http.StatusServiceUnavailable || len(c.one.polls) != 1 {
				t.Errorf("status %d, %d polls; want 503 and one", got, len(c.one.polls))
			}
			if got := c.post(t, "two", bytes.NewReader(body)); got != http.StatusNoContent {
				t.Errorf("status %d for another store, want 204", got)
			}
			<-c.one.bodies
			if got := c.post(t, "one", bytes.NewReader(body)); got != http.StatusNoContent || len(c.one.bodies) != maxBodies-1 {
				t.Errorf("status %d once there is room, %d bodies; want 204", got, len(c.one.bodies))
			}
		})
	}
}
