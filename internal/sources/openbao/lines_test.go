package openbao

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// framed is what readLines makes of the content.
func framed(t *testing.T, r io.Reader, limit int) (lines []string, skipped int, rest string) {
	t.Helper()
	behind, err := readLines(r, limit, func(line []byte) { lines = append(lines, string(line)) }, func(head []byte) {
		skipped++
		if len(head) > readBuffer || len(head) == 0 {
			t.Errorf("%d bytes of a line that is too long are kept", len(head))
		}
	})
	if err != nil && err.Error() != "reset" {
		t.Error(err)
	}
	return lines, skipped, string(behind)
}

func TestFraming(t *testing.T) {
	const limit = 3 * readBuffer
	long := strings.Repeat("x", limit)
	tests := []struct {
		name, content string
		want          []string
		skipped       int
		rest          string
	}{
		{name: "nothing"},
		{name: "two lines", content: "a\nbc\n", want: []string{"a", "bc"}},
		{name: "empty lines are left out", content: "\n\na\n \n", want: []string{"a"}},
		{name: "half a line at the end", content: "a\nb", want: []string{"a"}, rest: "b"},
		{name: "a line of more than a buffer", content: "a\n" + long[:readBuffer+7] + "\nb\n", want: []string{"a", long[:readBuffer+7], "b"}},
		{name: "a line of just the limit", content: long + "\nb\n", want: []string{long, "b"}},
		{name: "a line of one more is skipped to its end", content: "a\n" + long + "x\nb\n", want: []string{"a", "b"}, skipped: 1},
		{name: "a line of much more is skipped to its end", content: long + long + "\nb\n", want: []string{"b"}, skipped: 1},
		{name: "a line without an end", content: long + long, skipped: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once": strings.NewReader(test.content), "in halves": iotest.HalfReader(strings.NewReader(test.content)),
				"with an error": io.MultiReader(strings.NewReader(test.content), iotest.ErrReader(errors.New("reset"))),
			} {
				got, skipped, rest := framed(t, r, limit)
				if diff := cmp.Diff(test.want, got); diff != "" || skipped != test.skipped || rest != test.rest {
					t.Errorf("%s: skipped %d, rest %q, (-want +got):\n%s", how, skipped, rest, diff)
				}
			}
		})
	}
}

func FuzzFraming(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), 2)
	f.Add(bytes.Repeat([]byte("x"), 2*readBuffer), readBuffer)
	f.Fuzz(func(t *testing.T, content []byte, limit int) {
		if limit < 1 || limit > 2*readBuffer {
			return
		}
		got, skipped, rest := framed(t, bytes.NewReader(content), limit)
		whole := bytes.Split(content, []byte("\n"))
		var want []string
		wantRest, long := "", 0
		for i, line := range whole {
			isLast := i == len(whole)-1
			switch {
			case len(line) > limit+1, len(line) > limit && !isLast:
				long++
			case len(bytes.TrimSpace(line)) == 0:
			case isLast:
				wantRest = string(line)
			default:
				want = append(want, string(line))
			}
		}
		if skipped != long || rest != wantRest || !slices.Equal(got, want) {
			t.Errorf("%q, %d skipped, rest %q; want %q, %d, %q", got, skipped, rest, want, long, wantRest)
		}
	})
}

// auditOnly is a configuration of a store that cannot be asked.
const auditOnly = "stores: [{name: main, address: 'https://Bao.Example:8200/', aliases: ['http://bao']}]"

func startLines(t *testing.T, config, address string) *rig {
	t.Helper()
	r := newRig(t, config, func(o *Options) { o.SocketListen = address })
	r.start(t)
	eventually(t, "the feed listens", func() bool { return r.address() != "" })
	return r
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func TestLinesComeThroughSockets(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	folder, err := os.MkdirTemp("", "feed") //nolint:usetesting // a folder of the test has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	for _, test := range []struct{ name, network, address string }{
		{name: "TCP", network: "tcp", address: "127.0.0.1:0"},
		{name: "Unix", network: "unix", address: "unix:" + folder + "/socket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := startLines(t, auditOnly, test.address)
			first, second := dial(t, test.network, r.address()), dial(t, test.network, r.address())
			// What one peer does is nothing to another.
			fmt.Fprint(first, "nonsense\n{\"type\":\"response\"\n")
			fmt.Fprintf(first, `{"type":"response","response":{"mount_type":"kv"},"x":{"operation":"update"}}`+"\n")
			fmt.Fprintf(first, "%s\n%s", lines["response create secret/data/shop/db"], "half a li")
			first.Close()
			got := r.next(t)
			if got.Path.Path != "shop/db" || got.Version != 1 || got.Path.Store != "main" || got.Request != "" || !got.ReadAt.IsZero() {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff([]string{"https://bao.example:8200", "http://bao"}, got.Servers); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			long := bytes.Replace(lines["response update secret/data/shop/db"], []byte(`"data":{"data"`), []byte(`"data":{"x":"`+strings.Repeat("y", 1<<20)+`","data"`), 1)
			tooLong := strings.Repeat("z", maxLine)
			fmt.Fprintf(second, "%s\n%s%s\n%s\n", tooLong+"z", lines["response update secret/undelete/shop/db"], tooLong, long)
			if got := r.next(t); got.Version != 2 || got.Trace.Parent == "" {
				t.Errorf("%+v, want what the long line tells", got)
			}
			eventually(t, "all is counted", func() bool {
				// Of the lines that are too long one may be of interest, and so may half a line.
				return r.lines(t, used) == 2 && r.lines(t, malformed) == 1 && r.lines(t, ignored) == 3 && r.lines(t, dropped) == 2
			})
		})
	}
}

func TestAStoreThatCannotBeAskedIsTakenAtItsWord(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	r := startLines(t, auditOnly, "127.0.0.1:0")
	connection := dial(t, "tcp", r.address())
	for _, step := range []struct {
		line string
		want Observation
	}{
		{"response create kv1/app/x", Observation{State: Live, Operation: "create", Request: "8c00d74c-384f-7208-cbb8-472fce0681ba"}},
		{"response patch secret/data/shop/db", Observation{State: Live, Operation: "patch", Version: 3}},
		{"response delete secret/data/shop/db", Observation{State: Deleted, Operation: "delete", Request: "96f7d854-0d06-efda-5d80-5b5957499f1d"}},
		{"response update secret/undelete/shop/db", Observation{State: Live, Operation: "undelete", Request: "77b798cc-31a4-b3be-324f-e2fec6b860b4"}},
		{"response update secret/destroy/shop/db", Observation{State: Destroyed, Operation: "destroy", Request: "f96fa6f8-40ac-c470-c042-023606f13907"}},
		{"response delete secret/metadata/shop/db", Observation{State: Gone, Operation: "delete", Request: "84a8916b-272b-6142-c0b6-23b7424317d2"}},
	} {
		fmt.Fprintf(connection, "%s\n", lines[step.line])
		got := r.next(t)
		if got.State != step.want.State || got.Operation != step.want.Operation || got.Version != step.want.Version || got.Request != step.want.Request || got.At.IsZero() {
			t.Errorf("%s: %+v, want %+v", step.line, got, step.want)
		}
	}
}

func TestWhoMayConnect(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name string
		peer net.Addr
		want bool
	}{
		{name: "a unix socket's peer", peer: &net.UnixAddr{Name: "@"}, want: true},
		{name: "this host", peer: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, want: true},
		{name: "a host in the networks", peer: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)}, want: true},
		{name: "a host in the networks of IPv6", peer: &net.TCPAddr{IP: net.ParseIP("fd00::7")}, want: true},
		{name: "another host", peer: &net.TCPAddr{IP: net.IPv4(10, 2, 2, 3)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := allowed(test.peer, networks); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	r := startLines(t, auditOnly, "127.0.0.1:0")
	for range maxConnections {
		dial(t, "tcp", r.address())
	}
	// The one too many is closed, which ends its reading.
	for extra := dial(t, "tcp", r.address()); ; {
		if _, err := extra.Read(make([]byte, 1)); err != nil {
			break
		}
	}
	if got := r.lines(t, refused); got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

func TestAStoreIsNeverMadeToWait(t *testing.T) {
	line := samples(t, "openbao-2.6.2.jsonl")["response create secret/data/shop/db"]
	r := newRig(t, auditOnly, func(o *Options) { o.SocketListen = "127.0.0.1:0" })
	ctx, cancel := context.WithCancel(t.Context())
	done, tried := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		done <- r.feed.Run(ctx, func(Observation) bool {
			select {
			case tried <- struct{}{}:
			default:
			}
			return false
		})
	}()
	eventually(t, "the feed listens", func() bool { return r.address() != "" })
	connection := dial(t, "tcp", r.address())
	fmt.Fprintf(connection, "%s\n", line)
	<-tried
	for range spoolSize + 99 {
		fmt.Fprintf(connection, "%s\n", line)
	}
	eventually(t, "what has no room is counted", func() bool {
		// One is offered to the sink all the time.
		return r.lines(t, used) == spoolSize+1 && r.lines(t, dropped) == 99
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAVaultThatCannotBeAskedHasTheTimeOfTheLine(t *testing.T) {
	lines := samples(t, "vault-1.13.0.jsonl")
	r := startLines(t, auditOnly, "127.0.0.1:0")
	connection := dial(t, "tcp", r.address())
	for _, step := range []struct {
		line, at string
		want     Observation
	}{
		{"response create secret/data/shop/db", "2026-11-21T20:09:37.618263588Z", Observation{State: Live, Operation: "create", Version: 1}},
		{"response update secret/data/shop/db", "2026-11-21T20:09:37.623483902Z", Observation{State: Live, Operation: "update", Version: 2}},
		{
			"response delete secret/data/shop/db", "2026-11-21T20:09:37.625466072Z",
			Observation{State: Deleted, Operation: "delete", Request: "a9c71ec8-1cf8-7847-cdc8-291a87906416"},
		},
	} {
		fmt.Fprintf(connection, "%s\n", lines[step.line])
		want := step.want
		want.Path = events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
		want.Servers, want.Engine, want.By, want.At = []string{"https://bao.example:8200", "http://bao"}, events.EngineKV, "root", at(t, step.at)
		got := r.next(t)
		got.Received, got.Trace = time.Time{}, events.TraceContext{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.line, diff)
		}
	}
}

// elsewhere is a listener whose connections come from another host.
type elsewhere struct{ net.Listener }

func (e elsewhere) Accept() (net.Conn, error) {
	connection, err := e.Listener.Accept()
	return fromElsewhere{connection}, err
}

type fromElsewhere struct{ net.Conn }

func (fromElsewhere) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 2, 2, 3), Port: 41796}
}

func TestAHostThatMayNotConnectIsRefused(t *testing.T) {
	line := samples(t, "vault-1.13.0.jsonl")["response create secret/data/shop/db"]
	for _, test := range []struct {
		peers             string
		refused, observed int64
	}{{"10.1.0.0/16", 1, 0}, {"10.2.0.0/16", 0, 1}} {
		t.Run(test.peers, func(t *testing.T) {
			config := fmt.Sprintf("stores: [{name: main, address: 'https://bao', audit: {peers: [%s]}}]", test.peers)
			r := newRig(t, config, func(o *Options) {
				o.SocketListen = "127.0.0.1:0"
				open := o.Listen
				o.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
					listener, err := open(ctx, network, address)
					return elsewhere{listener}, err
				}
			})
			r.start(t)
			eventually(t, "the feed listens", func() bool { return r.address() != "" })
			connection := dial(t, "tcp", r.address())
			fmt.Fprintf(connection, "%s\n", line) // What is refused may be closed before.
			eventually(t, "the connection was taken or refused", func() bool { return r.lines(t, used)+r.lines(t, refused) > 0 })
			if got := r.lines(t, refused); got != test.refused {
				t.Errorf("refused: got %d, want %d", got, test.refused)
			}
			if got := r.lines(t, used); got != test.observed {
				t.Errorf("used: got %d, want %d", got, test.observed)
			}
		})
	}
}
