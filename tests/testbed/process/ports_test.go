package process

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestNoPortIsHandedOutTwiceAlsoByTwoProcesses(t *testing.T) {
	var one, other portAllocator
	taken := map[int]bool{}
	for range 3 * portBlock {
		for _, ports := range []*portAllocator{&one, &other} {
			port, err := ports.port()
			testkit.Must(t, err)
			if taken[port] {
				t.Fatalf("port %d is handed out twice", port)
			}
			taken[port] = true
		}
	}
	for _, guard := range append(one.guards, other.guards...) {
		guard.Close()
	}
}
