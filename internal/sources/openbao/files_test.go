package openbao

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// certificate writes a certificate of a new authority and its key to the files of a folder, and returns a pool with the authority.
func certificate(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	testkit.NewCA(t).Issue(t, folder, time.Now().Add(time.Hour))
	authority, err := os.ReadFile(folder + "/ca.crt")
	testkit.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return pool
}

func TestCertificatesAndTokensAreReadAgain(t *testing.T) {
	folder, tokenFile := t.TempDir(), write(t, "tokens", goodToken)
	pool := certificate(t, folder)
	clock := &aheadClock{}
	r := newRig(t, askOnly, func(o *Options) {
		o.receive(t, fmt.Sprintf("tokenFile: %s, tlsCertFile: %s/tls.crt, tlsKeyFile: %[2]s/tls.key", tokenFile, folder))
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
	pool = certificate(t, folder)
	testkit.Must(t, os.WriteFile(tokenFile, []byte(newToken), 0o600))
	clock.add(recheck)
	if got := status(pool, newToken); got != http.StatusNoContent {
		t.Errorf("status %d with the new token, want 204", got)
	}
	if got := status(pool, goodToken); got != http.StatusUnauthorized {
		t.Errorf("status %d with the old token, want 401", got)
	}
	// A malformed file changes nothing.
	testkit.Must(t, os.WriteFile(tokenFile, []byte("short"), 0o600))
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
	authority := folder + "/trusted.crt"
	// rotate makes the store use a certificate of another authority, and trust makes that the file of the authority.
	var serving atomic.Pointer[tls.Certificate]
	rotate := func() {
		certificate(t, folder)
		pair, err := tls.LoadX509KeyPair(folder+"/tls.crt", folder+"/tls.key")
		testkit.Must(t, err)
		serving.Store(&pair)
	}
	trust := func() { testkit.Must(t, os.Rename(folder+"/ca.crt", authority)) }
	rotate()
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
	testkit.Must(t, works())

	rotate()
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
