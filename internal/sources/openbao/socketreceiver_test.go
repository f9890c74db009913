package openbao

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// auditOnly configures a store that cannot be asked.
const auditOnly = "stores: [{name: main, address: 'https://Bao.Example:8200/', aliases: ['http://bao']}]"

func startLines(t *testing.T, config, address string) *rig {
	t.Helper()
	r := newRig(t, config, func(o *Options) { o.SocketListen, o.Now = address, afterSamples() })
	r.start(t)
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
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
			// Peers do not affect each other.
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
			long := bytes.Replace(lines["response update secret/data/shop/db"], []byte(`"data":{"data"`), []byte(`"data":{"x":"`+strings.Repeat("y", maxLine/2)+`","data"`), 1)
			tooLong := strings.Repeat("z", maxLine)
			fmt.Fprintf(second, "%s\n%s%s\n%s\n", tooLong+"z", lines["response update secret/undelete/shop/db"], tooLong, long)
			if got := r.next(t); got.Version != 2 || got.Trace.Parent == "" {
				t.Errorf("%+v, want what is in the long line", got)
			}
			testkit.Eventually(t, "all is counted", func() bool {
				// One of the long lines may be a change, and so may an incomplete line.
				return r.lines(t, used) == 2 && r.lines(t, malformed) == 1 && r.lines(t, ignored) == 3 && r.lines(t, dropped) == 2
			})
		})
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

func TestAPeerThatHoldsConnectionsDoesNotKeepTheStoreOut(t *testing.T) {
	line := samples(t, "openbao-2.6.2.jsonl")["response create secret/data/shop/db"]
	r := startLines(t, auditOnly, "127.0.0.1:0")
	held := make([]net.Conn, maxPeerConnections)
	for i := range held {
		held[i] = dial(t, "tcp", r.address())
	}
	store := dial(t, "tcp", r.address())
	fmt.Fprintf(store, "%s\n", line)
	if got := r.next(t); got.Version != 1 {
		t.Errorf("%+v", got)
	}
	// One of the others was closed, which ends its reading.
	if _, err := held[0].Read(make([]byte, 1)); err == nil {
		t.Error("the store answers a line")
	}
	if got := r.lines(t, refused); got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

func TestAStoreIsNeverMadeToWait(t *testing.T) {
	lines := repeated(t, spoolSize+100)
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
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	connection := dial(t, "tcp", r.address())
	fmt.Fprintf(connection, "%s\n", lines[0])
	<-tried
	for _, line := range lines[1:] {
		fmt.Fprintf(connection, "%s\n", line)
	}
	testkit.Eventually(t, "what has no room is counted", func() bool {
		// One more is being offered to the sink.
		return r.lines(t, used) == spoolSize+1 && r.lines(t, dropped) == 99
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// elsewhere is a listener whose connections seem to come from another host.
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
			testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
			connection := dial(t, "tcp", r.address())
			fmt.Fprintf(connection, "%s\n", line) // A refused connection may be closed earlier.
			testkit.Eventually(t, "the connection was taken or refused", func() bool { return r.lines(t, used)+r.lines(t, refused) > 0 })
			if got := r.lines(t, refused); got != test.refused {
				t.Errorf("refused: got %d, want %d", got, test.refused)
			}
			if got := r.lines(t, used); got != test.observed {
				t.Errorf("used: got %d, want %d", got, test.observed)
			}
		})
	}
}
