package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// otherServer listens for the routes of a server, and returns its address and when the certificates end that it is presented. It ends each
// connection, so that the server connects again.
func otherServer(t *testing.T, ca *testkit.CA) (address string, ends <-chan time.Time) {
	t.Helper()
	dir := t.TempDir()
	ca.Issue(t, dir, inDays(300))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	testkit.Must(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	testkit.Must(t, err)
	presented := make(chan time.Time)
	ctx, cancel := context.WithCancel(t.Context())
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			encrypted := conn.(*tls.Conn)
			if err := encrypted.HandshakeContext(ctx); err == nil {
				select {
				case presented <- encrypted.ConnectionState().PeerCertificates[0].NotAfter:
				case <-ctx.Done():
				}
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		accepting.Wait()
	})
	return listener.Addr().String(), presented
}

func TestOtherServersGetARenewedCertificateWithoutARestart(t *testing.T) {
	ca, dir := testkit.NewCA(t), t.TempDir()
	ca.Issue(t, dir, inDays(30))
	address, ends := otherServer(t, ca)
	config := fmt.Sprintf(`server_name: a, cluster { name: c, listen: "127.0.0.1:-1", routes: [ "nats://%s", "nats://127.0.0.1:1", "nats://127.0.0.1:2" ], tls { cert_file: "%s", key_file: "%s", ca_file: "%s", verify: true } }`,
		address, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"))
	path := filepath.Join(dir, "nats.conf")
	testkit.Must(t, os.WriteFile(path, []byte(config), 0o600))
	s, err := Start(Options{Listen: "127.0.0.1:-1", StoreDir: testkit.StoreDir(t), ConfigFile: path}, nil)
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no CA", err)
	}

	for days := 30; days <= 50; days += 10 {
		ca.Issue(t, dir, inDays(days))
		if days == 50 {
			testkit.Must(t, s.reload(s.storage.seen.Load().limit))
		}
		// A connection may have begun before.
		for timeout, end := time.After(testkit.Patience), (time.Time{}); end.Sub(inDays(days)).Abs() > time.Hour; {
			select {
			case end = <-ends:
			case <-timeout:
				t.Fatalf("the server to which it connects last got a certificate that ends at %s, want in %d days", end, days)
			}
		}
		if end := presentedTo(t, s, roots); end.Sub(inDays(days)).Abs() > time.Hour {
			t.Errorf("a server that connects gets a certificate that ends at %s, want in %d days", end, days)
		}
	}
	testkit.NewCA(t).Issue(t, dir, inDays(60))
	if end := presentedTo(t, s, roots); end.Sub(inDays(50)).Abs() > time.Hour {
		t.Errorf("with a certificate of another CA: a server that connects gets one that ends at %s, want the one before", end)
	}
	if end := expiry(t, s, "server"); end.Sub(inDays(50)).Abs() > time.Hour {
		t.Errorf("the metric says %s, want in 50 days", end)
	}
}

// presentedTo returns when the certificate ends that a server gets that connects.
func presentedTo(t *testing.T, s *Server, roots *x509.CertPool) time.Time {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.server.ClusterAddr().String())
	testkit.Must(t, err)
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter
}
