package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startWith starts a server that only this process reaches, with a configuration, and returns how many connections to a hub its metric counts:
// -1 if it has none.
func startWith(t *testing.T, name, config string) (s *Server, connections func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	testkit.Must(t, os.WriteFile(path, []byte("server_name: "+name+"\njetstream: { domain: "+name+" }\n"+config), 0o600))
	s, err := Start(Options{StoreDir: testkit.StoreDir(t), ConfigFile: path}, nil)
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	read := observe(t, s)
	return s, func() int {
		if n, ok := read()["keyturn.nats.leaf.connections{}"]; ok {
			return int(n)
		}
		return -1
	}
}

func TestTheMetricKnowsWhetherALeafNodeHasItsHub(t *testing.T) {
	port, err := process.FreePort()
	testkit.Must(t, err)
	address := process.Address(port)
	_, connections := startWith(t, "spoke", fmt.Sprintf("leafnodes { reconnect: 1, remotes: [ { url: %q } ] }", "nats://"+address))
	if got := connections(); got != 0 {
		t.Errorf("without a hub: got %d connections, want 0", got)
	}
	hub, ofHub := startWith(t, "hub", fmt.Sprintf("leafnodes { listen: %q }", address))
	testkit.Eventually(t, "the leaf node is connected", func() bool { return connections() == 1 })
	if got := ofHub(); got != -1 {
		t.Errorf("the hub, which is no leaf node, reports %d connections, want none", got)
	}
	hub.Shutdown()
	testkit.Eventually(t, "the connection is gone", func() bool { return connections() == 0 })
}
