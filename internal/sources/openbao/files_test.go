package openbao

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
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
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "audit"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{certFile: encoded, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		must(t, os.WriteFile(file, content, 0o600))
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
	must(t, os.WriteFile(tokenFile, []byte(newToken), 0o600))
	clock.add(recheck)
	if got := status(pool, newToken); got != http.StatusNoContent {
		t.Errorf("status %d with the new token, want 204", got)
	}
	if got := status(pool, goodToken); got != http.StatusUnauthorized {
		t.Errorf("status %d with the old token, want 401", got)
	}
	// A malformed file changes nothing.
	must(t, os.WriteFile(tokenFile, []byte("short"), 0o600))
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

func TestTheCertificateAuthorityOfAStoreIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile, authority := folder+"/tls.crt", folder+"/tls.key", folder+"/ca.crt"
	// rotate makes the store use another certificate, and trust makes that the file of the authority.
	var serving atomic.Pointer[tls.Certificate]
	rotate := func(serial int64) {
		certificate(t, certFile, keyFile, serial)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		must(t, err)
		serving.Store(&pair)
	}
	trust := func() {
		must(t, os.Rename(certFile, authority))
	}
	rotate(1)
	trust()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"keys":["a"]}}`)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*serving.Load()}}, nil
	}}
	server.StartTLS()
	defer server.Close()
	config := fmt.Sprintf("stores: [{name: main, address: '%s', auth: {token: a}, tls: {caCertFile: %q}}]", server.URL, authority)
	clock := &aheadClock{}
	r := newRig(t, config, func(o *Options) { o.Now = clock.now })
	feed := r.feed
	defer feed.pipelines[0].client.close()
	works := func() error {
		_, err := feed.pipelines[0].client.list(t.Context(), "root", "secret/metadata", "")
		return err
	}
	must(t, works())

	rotate(2)
	server.CloseClientConnections()
	if err := works(); err == nil {
		t.Fatal("the store is trusted with a certificate of another authority")
	}
	trust()
	clock.add(recheck)
	if err := works(); err != nil {
		t.Errorf("the new authority is not trusted: %v", err)
	}
}
