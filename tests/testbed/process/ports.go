package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports are taken from below the range that the kernel hands out by itself (32768 and up). A port from that range
// could become the source port of somebody's outgoing connection while its server is being restarted, even of one to
// that very port.
const (
	lowestPort = 20000
	portBlock  = 64
	portBlocks = (32768 - lowestPort) / portBlock
)

// portAllocator hands out each port once. Test binaries run at the same time, and a port that one has found free is free
// for another too until a server listens on it: so each has blocks of its own, and listens on the first port of a block for as
// long as it runs to keep the others out.
type portAllocator struct {
	mu     sync.Mutex
	guards []net.Listener
	next   int
	end    int
}

var processPorts portAllocator

func (a *portAllocator) port() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 1000 {
		if a.next == a.end && !a.claim() {
			continue
		}
		port := a.next
		a.next++
		l, err := listenOn(port)
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, errors.New("find free ports on loopback: too few")
}

// claim takes a block that no other process has.
func (a *portAllocator) claim() bool {
	first := lowestPort + portBlock*rand.IntN(portBlocks)
	guard, err := listenOn(first)
	if err != nil {
		return false
	}
	a.guards = append(a.guards, guard)
	a.next, a.end = first+1, first+portBlock
	return true
}

func listenOn(port int) (net.Listener, error) { return net.Listen("tcp", Address(port)) }

// FreePorts returns n different loopback ports that nothing listens on.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		port, err := processPorts.port()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// FreePort returns a loopback port that nothing listens on and that nobody else is given, neither by the kernel nor by
// another test binary: it stays free until a server is started on it, and while that is started again.
func FreePort() (int, error) { return processPorts.port() }

// Loopback is the address that every server listens on.
const Loopback = "127.0.0.1"

// Address returns the host and port of a port on loopback.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }
