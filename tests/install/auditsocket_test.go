package install

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheSocketComponentReceivesTheAuditOfAVault(t *testing.T) {
	t.Parallel()
	c := newComponents(t, "openbao-socket")
	const store = "stores: [{name: main, address: 'https://vault.vault.svc:8200'"
	c.openBao(map[string][]byte{"stores.yaml": []byte(store + "}]\n")})
	c.await(c.run("keys"))
	// As it is in the pod, where others than this host can connect.
	c.endsSaying("audit", "want audit.peers to name the networks of the store's servers")
	c.openBao(map[string][]byte{"stores.yaml": []byte(store + ", audit: {peers: [10.0.0.0/16]}}]\n")})
	c.receives("keyturn-audit-socket", "vault")
	c.runReady("actuator")
	c.runReady("audit")
	c.send(auditLine(t, "vault-1.13.0.jsonl"))
	c.awaitRotated(events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"})
}

// endsSaying runs a program that is to end with an error.
func (c *components) endsSaying(program, sentence string) {
	c.Helper()
	p := c.run(program)
	if err := c.end(p); err == nil || !strings.Contains(p.Output(), sentence) {
		c.Fatalf("the %s: got %v, want %q in\n%s", program, err, sentence, p.Output())
	}
}

// send sends a line as the socket device does, which is answered nothing, from a host that may always connect: the watcher's own.
func (c *components) send(line []byte) {
	c.Helper()
	connection, err := new(net.Dialer).DialContext(c.Context(), "tcp", c.audit)
	if err != nil {
		c.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		c.Fatal(err)
	}
	if _, err := connection.Write(line); err != nil {
		c.Fatal(err)
	}
}
