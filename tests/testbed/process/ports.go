package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// The ports are below the range from which the kernel assigns ports (32768 and up). A port of that range could become the
// source port of an outgoing connection while its server is being restarted, even of a connection to that same port.
const (
	lowestPort = 20000
	portBlock  = 64
	portBlocks = (32768 - lowestPort) / portBlock
)

// portAllocator returns each port once. Test binaries run concurrently, and a port that one of them finds free looks free to
// the others, too, until a server listens on it. So each binary claims its own blocks of ports, by listening on the first port
// of a block for as long as it runs.
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

// claim claims a block that no other process has.
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

// FreePort returns a loopback port that nothing listens on. Neither the kernel nor another test binary assigns it to anyone
// else, so it stays free until a server is started on it, and while that server is restarted.
func FreePort() (int, error) { return processPorts.port() }

// FreeAddress returns the address of a port as FreePort does, for a test.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	testkit.Must(t, err)
	return Address(port)
}

// Loopback is the address that every server listens on.
const Loopback = "127.0.0.1"

// Address returns the host and port for a port on loopback.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }
