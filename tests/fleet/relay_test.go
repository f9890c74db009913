package fleet

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// relay stands before servers, as a load balancer does, so that a test can cut the connections to them.
type relay struct {
	listener net.Listener
	targets  []string
	wg       sync.WaitGroup

	mu     sync.Mutex
	next   int
	isDown bool
	open   map[net.Conn]struct{}
}

// newRelay relays to whichever of the addresses answers, in turn, until the test ends.
func newRelay(t *testing.T, targets ...string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	r := &relay{listener: listener, targets: targets, open: map[net.Conn]struct{}{}}
	ctx := t.Context()
	r.wg.Go(func() { r.serve(ctx) })
	t.Cleanup(func() {
		listener.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

// cut breaks all connections, in the middle of whatever is on them, and lets none come to be.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = true
	for conn := range r.open {
		conn.Close()
	}
	clear(r.open)
}

// mend lets connections come to be again.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = false
}

// links returns how many connections there are.
func (r *relay) links() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) / 2
}

func (r *relay) serve(ctx context.Context) {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far := r.dial(ctx)
		if far == nil || !r.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		r.wg.Go(func() { r.copy(near, far) })
		r.wg.Go(func() { r.copy(far, near) })
	}
}

// dial returns a connection to a server, or nil.
func (r *relay) dial(ctx context.Context) net.Conn {
	var dialer net.Dialer
	for range r.targets {
		r.mu.Lock()
		down, target := r.isDown, r.targets[r.next%len(r.targets)]
		r.next++
		r.mu.Unlock()
		if down {
			return nil
		}
		if conn, err := dialer.DialContext(ctx, "tcp", target); err == nil {
			return conn
		}
	}
	return nil
}

// keep records the connections, so that they can be cut. It returns false if the link was cut meanwhile.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown {
		return false
	}
	for _, conn := range conns {
		r.open[conn] = struct{}{}
	}
	return true
}

// copy copies until one of the two is closed, and closes both.
func (r *relay) copy(to, from net.Conn) {
	// The relay does not care how a connection ends.
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, to)
	delete(r.open, from)
}
