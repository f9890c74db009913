package openbao

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTheCertificateAuthorityOfAStoreIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile, authority := folder+"/tls.crt", folder+"/tls.key", folder+"/ca.crt"
	// rotate makes the store use another certificate, and trust makes that the file of the authority.
	var serving atomic.Pointer[tls.Certificate]
	rotate := func(serial int64) {
		certificate(t, certFile, keyFile, serial)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		serving.Store(&pair)
	}
	trust := func() {
		if err := os.Rename(certFile, authority); err != nil {
			t.Fatal(err)
		}
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
	if err := works(); err != nil {
		t.Fatal(err)
	}

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

	// A file that cannot be read changes nothing.
	for i, broken := range []func() error{
		func() error { return os.WriteFile(authority, nil, 0o600) },
		func() error { return os.Remove(authority) },
	} {
		if err := broken(); err != nil {
			t.Fatal(err)
		}
		clock.add(recheck)
		if err := works(); err != nil {
			t.Error(err)
		}
		if got := strings.Count(r.log.String(), "changed file cannot be read"); got != i+1 {
			t.Errorf("%d broken files are logged, want %d:\n%s", got, i+1, r.log)
		}
	}
}
