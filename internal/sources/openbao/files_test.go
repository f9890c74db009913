package openbao

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// certificate writes a certificate for 127.0.0.1 and its key to the files and returns a pool with it.
func certificate(t *testing.T, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "audit"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{certFile: encoded, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(encoded)
	return pool
}

func TestCertificatesAndTokensAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile, tokenFile := folder+"/tls.crt", folder+"/tls.key", write(t, "tokens", goodToken)
	pool := certificate(t, certFile, keyFile, 1)
	clock := &aheadClock{}
	r := newRig(t, askOnly, func(o *Options) {
		o.AuditListen, o.AuditTokenFile, o.AuditTLSCertFile, o.AuditTLSKeyFile = "127.0.0.1:0", tokenFile, certFile, keyFile
		o.Now, o.Transport = clock.now, newFakeStore(kv2)
	})
	r.start(t)
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	status := func(pool *x509.CertPool, token string) int {
		client := newClientOf(t, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
		defer client.CloseIdleConnections()
		return post(t, client, "https://"+r.address()+"/v1/audit/main", "Bearer "+token, strings.NewReader("{}"))
	}
	if got := status(pool, goodToken); got != http.StatusNoContent {
		t.Fatalf("status %d, want 204", got)
	}
	const newToken = "a-new-token-which-is-longer"
	pool = certificate(t, certFile, keyFile, 2)
	if err := os.WriteFile(tokenFile, []byte(newToken), 0o600); err != nil {
		t.Fatal(err)
	}
	clock.add(recheck)
	if got := status(pool, newToken); got != http.StatusNoContent {
		t.Errorf("status %d with the new token, want 204", got)
	}
	if got := status(pool, goodToken); got != http.StatusUnauthorized {
		t.Errorf("status %d with the old token, want 401", got)
	}
	// A malformed file changes nothing.
	if err := os.WriteFile(tokenFile, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		clock.add(recheck)
		if got := status(pool, newToken); got != http.StatusNoContent {
			t.Errorf("status %d with the token that was read last, want 204", got)
		}
	}
	if log := r.log.String(); strings.Count(log, "changed file cannot be read") != 1 || strings.Contains(log, "short\"") {
		t.Errorf("want one line without the token:\n%s", log)
	}
}

// aheadClock is a clock that a test can move.
type aheadClock struct{ ahead atomic.Int64 }

func (c *aheadClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *aheadClock) add(d time.Duration) { c.ahead.Add(int64(d)) }
