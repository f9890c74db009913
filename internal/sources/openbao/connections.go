package openbao

import (
	"bytes"
	"net"
	"sync"
	"time"
)

const (
	// maxConnections is the maximum number of connections of a store. Each of its nodes has one or two.
	maxConnections = 64
	// maxPeerConnections is the maximum number of connections from one address. Several nodes may share the address of a proxy.
	maxPeerConnections = 16
	// lineTimeout is how long a line may take from its first byte to its end.
	lineTimeout = 30 * time.Second
)

// connections has the open connections of a receiver. It is safe for concurrent use.
type connections struct {
	mu    sync.Mutex
	open  map[*lineConnection]struct{}
	reads uint64 // orders the connections by their last read
}

// lineConnection is a connection whose lines must end in time. Its reader is one goroutine.
type lineConnection struct {
	net.Conn
	among    *connections
	peer     string // the address without its port, the same for all peers on a unix socket
	lastRead uint64 // guarded by connections.mu; when it was opened if nothing was read yet
	half     bool   // the start of a line was read, but not its end
}

func newConnections() *connections { return &connections{open: map[*lineConnection]struct{}{}} }

// add adds a connection. If there are too many, it closes the connection that was idle for longest, from the same address if that has too many, and
// otherwise from the address with the most: a peer that only holds connections must not keep the store out.
func (c *connections) add(connection net.Conn) (added *lineConnection, closed bool) {
	peer := connection.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for other := range c.open {
		counts[other.peer]++
	}
	var victim *lineConnection
	if counts[peer] >= maxPeerConnections || len(c.open) >= maxConnections {
		for other := range c.open {
			if counts[peer] >= maxPeerConnections && other.peer != peer {
				continue
			}
			if victim == nil || counts[other.peer] > counts[victim.peer] ||
				counts[other.peer] == counts[victim.peer] && other.lastRead < victim.lastRead {
				victim = other
			}
		}
		delete(c.open, victim)
		victim.Close()
	}
	c.reads++
	added = &lineConnection{Conn: connection, among: c, peer: peer, lastRead: c.reads}
	c.open[added] = struct{}{}
	return added, victim != nil
}

// remove removes a connection that has ended.
func (c *connections) remove(connection *lineConnection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, connection)
}

// Read reads like the connection itself, and fails once a line has taken too long. Between two lines there is no timeout, because an unused store
// sends nothing.
func (c *lineConnection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	c.among.mu.Lock()
	c.among.reads++
	c.lastRead = c.among.reads
	c.among.mu.Unlock()
	switch end := bytes.LastIndexByte(p[:n], '\n'); {
	case end == n-1:
		if c.half && err == nil {
			err = c.SetReadDeadline(time.Time{})
		}
		c.half = false
	case (end >= 0 || !c.half) && err == nil:
		// Deadlines of connections always use the system clock.
		err = c.SetReadDeadline(time.Now().Add(lineTimeout))
		c.half = true
	}
	return n, err
}
