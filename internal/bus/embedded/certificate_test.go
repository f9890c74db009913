package embedded

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
)

// encrypted is a server with TLS.
type encrypted struct {
	*Server
	t   *testing.T
	ca  *testkit.CA
	dir string
	log testkit.Log
}

// theTLS is a block as in deploy/programs/nats.conf.
const theTLS = "tls: { cert_file: $TEST_TLS_CERT, key_file: $TEST_TLS_KEY }"

// startEncrypted starts a server with a certificate that ends then, and a configuration of TLS.
func startEncrypted(t *testing.T, end time.Time, config string) *encrypted {
	t.Helper()
	e := &encrypted{t: t, ca: testkit.NewCA(t), dir: t.TempDir()}
	e.ca.Issue(t, e.dir, end)
	t.Setenv("TEST_TLS_CERT", e.file("tls.crt"))
	t.Setenv("TEST_TLS_KEY", e.file("tls.key"))
	for name, content := range map[string]string{"nats.conf": config, "other.conf": theTLS} {
		testkit.Must(t, os.WriteFile(e.file(name), []byte(content), 0o600))
	}
	var err error
	e.Server, err = Start(Options{Listen: "127.0.0.1:-1", StoreDir: testkit.StoreDir(t), ConfigFile: e.file("nats.conf")}, slog.New(slog.NewTextHandler(&e.log, nil)))
	testkit.Must(t, err)
	t.Cleanup(e.Shutdown)
	return e
}

func (e *encrypted) file(name string) string { return filepath.Join(e.dir, name) }

// connect connects as the programs do, by a name or an address.
func (e *encrypted) connect(host string, further ...nats.Option) *nats.Conn {
	e.t.Helper()
	options := append(further, nats.RootCAs(e.file("ca.crt")), nats.Timeout(testkit.Patience))
	connection, err := nats.Connect(strings.Replace(e.ClientURL(), "127.0.0.1", host, 1), options...)
	testkit.Must(e.t, err)
	e.t.Cleanup(connection.Close)
	return connection
}

// presented returns the end of the certificate that a connection was presented.
func (e *encrypted) presented(connection *nats.Conn) time.Time {
	e.t.Helper()
	state, err := connection.TLSConnectionState()
	testkit.Must(e.t, err)
	return state.PeerCertificates[0].NotAfter
}

// inDays returns a time that a certificate can have.
func inDays(n int) time.Time { return time.Now().AddDate(0, 0, n).UTC().Truncate(time.Second) }

func TestAClientWithoutTLSIsRefused(t *testing.T) {
	e := startEncrypted(t, inDays(30), theTLS)
	if _, err := nats.Connect(e.ClientURL(), nats.Timeout(testkit.Patience)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client without the CA: got %v, want it not to trust the server", err)
	}
	// One that ignores what the server says.
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.ClientURL(), "tls://"))
	testkit.Must(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	info, err := reader.ReadString('\n')
	if err != nil || !strings.Contains(info, `"tls_required":true`) {
		t.Fatalf("got %q, %v, want the server to require tls", info, err)
	}
	testkit.Must(t, errIn(fmt.Fprint(conn, "CONNECT {\"verbose\":false}\r\nPING\r\n")))
	for {
		line, err := reader.ReadString('\n')
		if strings.Contains(line, "PONG") {
			t.Fatal("the server talks to a client without TLS")
		}
		if err != nil {
			break
		}
	}
	old := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // it must be refused
	options := []nats.Option{nats.Secure(old), nats.RootCAs(e.file("ca.crt")), nats.Timeout(testkit.Patience)}
	if _, err := nats.Connect(e.ClientURL(), options...); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a client with TLS 1.1: got %v, want it refused", err)
	}
}

func TestTheProgramItselfConnectsWithoutTLS(t *testing.T) {
	e := startEncrypted(t, time.Now().AddDate(0, 0, -1), theTLS) // even an expired certificate does not matter
	// It is patient with a server that answers no ping: on a busy machine it would otherwise reconnect.
	connection, err := bus.Connect(t.Context(), bus.ConnectOptions{Cluster: "blue"}, e.ClientOption(), nats.PingInterval(testkit.Patience))
	testkit.Must(t, err)
	defer connection.Close()
	lost := connection.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	testkit.Must(t, e.reload(e.storage.seen.Load().limit))
	testkit.Must(t, connection.FlushTimeout(testkit.Patience))
	select {
	case status := <-lost:
		t.Errorf("the connection was lost: %s", status)
	default:
	}
	options := []nats.Option{nats.RootCAs(e.file("ca.crt")), nats.Timeout(testkit.Patience)}
	if _, err := nats.Connect(e.ClientURL(), options...); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("another program: got %v, want it to refuse the expired certificate", err)
	}
}

func TestARenewedCertificateIsPresentedWithoutARestart(t *testing.T) {
	for name, config := range map[string]string{
		"the block of the deployment": theTLS,
		"a block written otherwise":   `TLS { CERT_FILE = $TEST_TLS_CERT; Key_File = $TEST_TLS_KEY }`,
		"a block in another file":     "include other.conf",
	} {
		t.Run(name, func(t *testing.T) {
			e := startEncrypted(t, inDays(30), config)
			first := e.connect("127.0.0.1")
			lost := first.StatusChanged(nats.RECONNECTING, nats.CLOSED)
			for days := 40; days <= 60; days += 10 {
				if days == 60 { // another CA, too
					e.ca = testkit.NewCA(t)
				}
				e.ca.Issue(t, e.dir, inDays(days))
				if days == 50 {
					testkit.Must(t, e.reload(e.storage.seen.Load().limit))
				}
				for _, host := range []string{"127.0.0.1", "localhost"} {
					if got := e.presented(e.connect(host)); got.Sub(inDays(days)).Abs() > time.Hour {
						t.Errorf("by %s: the certificate ends at %s, want in %d days", host, got, days)
					}
				}
			}
			select {
			case status := <-lost:
				t.Errorf("an older connection was lost: %s", status)
			default:
			}
			if n := strings.Count(e.log.String(), "nats certificate replaced"); n < 2 || n > 3 {
				t.Errorf("the log says %d times that the certificate was replaced:\n%s", n, e.log.String())
			}
		})
	}
}

func TestFilesThatAreNoCertificateLeaveTheOneBefore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(e *encrypted) error
	}{
		{"no files", func(e *encrypted) error { return os.Remove(e.file("tls.key")) }},
		{"the key of another certificate", func(e *encrypted) error {
			key, err := os.ReadFile(e.file("tls.key"))
			e.ca.Issue(e.t, e.dir, inDays(40))
			if err != nil {
				return err
			}
			return os.WriteFile(e.file("tls.key"), key, 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := startEncrypted(t, inDays(30), theTLS)
			secret, err := os.ReadFile(e.file("tls.key"))
			testkit.Must(t, err)
			testkit.Must(t, tt.damage(e))
			for range 3 {
				if got := e.presented(e.connect("127.0.0.1")); got.Sub(inDays(30)).Abs() > time.Hour {
					t.Errorf("the certificate ends at %s, want the one before", got)
				}
			}
			log := e.log.String()
			if n := strings.Count(log, "cannot read the nats certificate; connections get the previous one"); n != 1 {
				t.Errorf("the log says it %d times, want once:\n%s", n, log)
			}
			if strings.Contains(log, strings.Split(string(secret), "\n")[1]) {
				t.Error("the log has the key")
			}
			e.ca.Issue(t, e.dir, inDays(50))
			if got := e.presented(e.connect("127.0.0.1")); got.Sub(inDays(50)).Abs() > time.Hour {
				t.Errorf("the certificate ends at %s, want the new one", got)
			}
		})
	}
}

func TestTheMetricKnowsTheCertificateThatNewConnectionsGet(t *testing.T) {
	e := startEncrypted(t, inDays(30), theTLS)
	e.ca.Issue(t, e.dir, inDays(40))
	if got := expiry(t, e.Server, "client"); got.Sub(inDays(40)).Abs() > time.Hour {
		t.Errorf("got %s, want in 40 days, though nobody has connected", got)
	}
	plain := startEncrypted(t, inDays(30), "max_payload: 1MB")
	if got := expiry(t, plain.Server, "client"); !got.IsZero() {
		t.Errorf("without TLS: got %s, want nothing", got)
	}
}
