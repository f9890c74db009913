package openbao

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	goodToken  = "0123456789abcdef0123"
	otherToken = "fedcba98765432100123"
)

func startReceiver(t *testing.T) *rig {
	t.Helper()
	store := newFakeStore(kv2)
	store.say("secret/metadata/shop/db", http.StatusOK, metadataOf(2, "2026-11-20T11:03:06.591040173Z"))
	r := newRig(t, askOnly, func(o *Options) {
		o.receive(t, "tokenFile: "+write(t, "tokens", goodToken+"\n\n main "+otherToken+"\n"))
		o.Now, o.Transport = afterSamples(), store
	})
	r.start(t)
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	return r
}

// receive sets the files of the receiver, and has it listen.
func (o *Options) receive(t *testing.T, files string) {
	t.Helper()
	o.AuditListen = "127.0.0.1:0"
	content, err := os.ReadFile(o.ConfigFile)
	testkit.Must(t, err)
	stores, _, _ := strings.Cut(string(content), "\naudit: ")
	testkit.Must(t, os.WriteFile(o.ConfigFile, []byte(stores+"\naudit: {"+files+"}"), 0o600))
}

// post sends a body, and returns the status of the answer.
func post(t *testing.T, client *http.Client, url, authorization string, body io.Reader) int {
	t.Helper()
	status, _ := postAs(t, client, url, authorization, "", body)
	return status
}

// postAs sends a body in an encoding, and returns the status of the answer, and whether the connection ends with it.
func postAs(t *testing.T, client *http.Client, url, authorization, encoding string, body io.Reader) (status int, isLast bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	testkit.Must(t, err)
	for name, value := range map[string]string{"Authorization": authorization, "Content-Encoding": encoding} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := client.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	return response.StatusCode, response.Close
}

func newClientOf(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestTheAuditReceiverAnswers(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	one, update, scan := lines["response create secret/data/shop/db"], lines["response update secret/data/shop/db"], lines["response scan secret/detailed-metadata/"]
	// long returns a line with a value of more than a megabyte before all that counts.
	long := func(line []byte) []byte {
		value := fmt.Appendf(nil, `"request":{"data":{"x":%q},`, strings.Repeat("x", 1_200_000))
		return bytes.Replace(line, []byte(`"request":{`), value, 1)
	}
	const good = "Bearer " + goodToken
	for _, test := range []struct {
		name                    string
		path                    string // empty: that of the store
		authorization, encoding string
		body                    []byte
		want                    int
		looked                  bool // at the secret
		counts                  map[verdict]int64
	}{
		{name: "a line", authorization: good, body: one, want: 204, looked: true, counts: map[verdict]int64{used: 1}},
		{name: "with the other token", authorization: "bearer " + otherToken, body: one, want: 204, looked: true, counts: map[verdict]int64{used: 1}},
		{name: "without a token", body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "with a part of the token", authorization: "Bearer " + goodToken[1:], body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "with an empty token", authorization: "Bearer ", body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "by another scheme", authorization: "Basic " + goodToken, body: one, want: 401, counts: map[verdict]int64{refused: 1}},
		{name: "of a store that is not there", path: "/v1/audit/other", authorization: good, body: one, want: 404},
		{name: "at a path of no store", path: "/", body: one, want: 404},
		{name: "a write whose line is long", authorization: good, body: joined("", "\n", "")([][]byte{long(one), update}), want: 204, looked: true, counts: map[verdict]int64{used: 2}},
		// The line of a poll of a large mount: another poll would only cause another such line.
		{name: "a scan whose line is long", authorization: good, body: joined("", "\n", "\n")([][]byte{long(scan), one}), want: 204, looked: true, counts: map[verdict]int64{ignored: 1, used: 1}},
		{name: "what is no line", authorization: good, body: []byte("starting\n{}\n"), want: 204, counts: map[verdict]int64{foreign: 2}},
		{name: "more than is read", authorization: good, body: bytes.Repeat([]byte("x"), maxBody+1), want: 413, counts: map[verdict]int64{dropped: 1}},
		{name: "little that is more when it is decompressed", authorization: good, encoding: "gzip", body: packed(t, make([]byte, maxBody+1)), want: 413, counts: map[verdict]int64{dropped: 1}},
		{name: "what cannot be decompressed", authorization: good, encoding: "gzip", body: []byte("{}\n"), want: 400, counts: map[verdict]int64{malformed: 1}},
		{name: "in an encoding that it does not know", authorization: good, encoding: "zstd", body: []byte("{}\n"), want: 415, counts: map[verdict]int64{malformed: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := startReceiver(t)
			url := "http://" + r.address() + orElse(test.path, "/v1/audit/main")
			got, isLast := postAs(t, newClientOf(t, nil), url, test.authorization, test.encoding, bytes.NewReader(test.body))
			if got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
			// It keeps no connection without a token. That of a body of which it has not read the end is lost, too.
			if ends := test.want == 401 || test.path == "/"; isLast != ends && test.want != 413 {
				t.Errorf("the connection ends: %t, want %t", isLast, ends)
			}
			if test.looked {
				if o := r.next(t); o.Path.Path != "shop/db" || o.Version != 2 {
					t.Errorf("observed %+v, want what the store has", o)
				}
			}
			for _, result := range []verdict{used, ignored, malformed, foreign, refused, dropped} {
				if got := r.lines(t, result); got != test.counts[result] {
					t.Errorf("%d lines are %s, want %d", got, result, test.counts[result])
				}
			}
		})
	}
}

func TestAnswersDoNotWaitForTheSink(t *testing.T) {
	r := newRig(t, askOnly, func(o *Options) {
		o.receive(t, "tokenFile: "+write(t, "tokens", goodToken))
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
	lines, in := make([][]byte, maxLooks+32), r.feed.pipelines[0].intake
	for i := range lines {
		lines[i] = writeLine("update", fmt.Sprintf("secret/data/%d", i), 1)
	}
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
	r := startReceiver(t)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address())
	testkit.Must(t, err)
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
	tokens, err := bearersOf(t, "one "+goodToken+"\ntwo "+goodToken, "one", "two")
	testkit.Must(t, err)
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
