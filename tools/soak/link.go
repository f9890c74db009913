package main

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// link is a proxy between programs and a server that can cut or silence the connections between them.
type link struct {
	listener net.Listener
	targets  []string
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu   sync.Mutex
	next int
	// down says that connections are refused. silent holds back their data until it is closed; if it is nil, nothing is held
	// back.
	down   bool
	silent chan struct{}
	open   map[net.Conn]struct{}
}

// newLink listens on loopback, and forwards connections to the targets in turn.
func newLink(ctx context.Context, targets ...string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("making a link: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &link{listener: listener, targets: targets, stop: stop, open: make(map[net.Conn]struct{})}
	l.running.Go(func() { l.serve(ctx) })
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

// close ends the link and its connections.
func (l *link) close() {
	l.stop()
	l.listener.Close()
	l.cut()
	l.unmute()
	l.running.Wait()
}

// cut breaks all connections and refuses new ones until mend is called.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for conn := range l.open {
		conn.Close()
	}
	clear(l.open)
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// mute holds back whatever is sent from now on, like a network that loses every packet. Nothing is lost in the end: the data arrives
// after unmute.
func (l *link) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent == nil {
		l.silent = make(chan struct{})
	}
}

func (l *link) unmute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent != nil {
		close(l.silent)
		l.silent = nil
	}
}

func (l *link) serve(ctx context.Context) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far := l.dial(ctx)
		if far == nil || !l.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		l.running.Go(func() { l.pass(ctx, near, far) })
		l.running.Go(func() { l.pass(ctx, far, near) })
	}
}

// dial returns a connection to a target, or nil if that fails.
func (l *link) dial(ctx context.Context) net.Conn {
	var dialer net.Dialer
	for range l.targets {
		l.mu.Lock()
		down, target := l.down, l.targets[l.next%len(l.targets)]
		l.next++
		l.mu.Unlock()
		if down {
			return nil
		}
		if conn, err := dialer.DialContext(ctx, "tcp", target); err == nil {
			return conn
		}
	}
	return nil
}

// keep records connections so that they can be cut, and reports whether the link is still up.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	for _, conn := range conns {
		l.open[conn] = struct{}{}
	}
	return true
}

// pass copies until one of the two connections is closed, and closes both.
func (l *link) pass(ctx context.Context, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.await(ctx)
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			break
		}
	}
	to.Close()
	from.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, to)
	delete(l.open, from)
}

// await waits while the link is silent.
func (l *link) await(ctx context.Context) {
	l.mu.Lock()
	silent := l.silent
	l.mu.Unlock()
	if silent == nil {
		return
	}
	select {
	case <-silent:
	case <-ctx.Done():
	}
}
