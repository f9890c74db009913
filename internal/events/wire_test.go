package events_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// wire forwards TCP connections to a server, until it is cut.
type wire struct {
	net.Listener
	dial  func() (net.Conn, error)
	ended sync.WaitGroup

	mu   sync.Mutex
	open []*stretch
}

// stretch is one connection of a wire.
type stretch struct {
	ends [2]net.Conn
	cut  atomic.Bool
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, dial: func() (net.Conn, error) { return new(net.Dialer).DialContext(t.Context(), "tcp", server) }}
	w.ended.Go(w.accept)
	t.Cleanup(func() {
		listener.Close()
		w.mu.Lock()
		for _, s := range w.open {
			s.ends[0].Close()
			s.ends[1].Close()
		}
		w.mu.Unlock()
		w.ended.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		client, err := w.Accept()
		if err != nil {
			return
		}
		server, err := w.dial()
		if err != nil {
			client.Close()
			continue
		}
		s := &stretch{ends: [2]net.Conn{client, server}}
		w.mu.Lock()
		w.open = append(w.open, s)
		w.mu.Unlock()
		w.ended.Go(func() { s.forward(client, server) })
		w.ended.Go(func() { s.forward(server, client) })
	}
}

// forward copies what it reads. Once the stretch is cut, it reads on and copies nothing, so that neither end learns of it.
func (s *stretch) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if s.cut.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cutAll makes the server vanish for the connections that are open. New ones reach it.
func (w *wire) cutAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.open {
		s.cut.Store(true)
	}
}
