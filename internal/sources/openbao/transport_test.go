package openbao

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

func TestTheCertificateAuthorityOfAStoreIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile, authority := folder+"/tls.crt", folder+"/tls.key", folder+"/ca.crt"
	// rotate makes the store use another certificate, and trust makes that the file of the authority.
	rotate := func(serial int64) { certificate(t, certFile, keyFile, serial) }
	trust := func() {
		if err := os.Rename(certFile, authority); err != nil {
			t.Fatal(err)
		}
	}
	rotate(1)
	keys, err := newKeypair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	trust()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"keys":["a"]}}`)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*keys.current()}}, nil
	}}
	server.StartTLS()
	defer server.Close()
	config := fmt.Sprintf("stores: [{name: main, address: '%s', auth: {token: a}, tls: {caCertFile: %q}}]", server.URL, authority)
	feed := newRig(t, config, nil).feed
	defer feed.pipelines[0].client.close()
	works := func() error {
		_, err := feed.pipelines[0].client.list(t.Context(), "root", "secret/metadata", "")
		return err
	}
	if err := works(); err != nil {
		t.Fatal(err)
	}

	rotate(2)
	if err := keys.refresh(); err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections()
	if err := works(); err == nil {
		t.Fatal("the store is trusted with a certificate of another authority")
	}
	refresh := func() (err error) {
		for _, one := range feed.refreshers() {
			err = one.refresh()
		}
		return err
	}
	trust()
	if err := refresh(); err != nil {
		t.Fatal(err)
	}
	if err := works(); err != nil {
		t.Errorf("the new authority is not trusted: %v", err)
	}

	// A file that cannot be read changes nothing.
	for _, broken := range []func() error{
		func() error { return os.WriteFile(authority, []byte("nonsense"), 0o600) },
		func() error { return os.Remove(authority) },
	} {
		if err := broken(); err != nil {
			t.Fatal(err)
		}
		if err := refresh(); err == nil {
			t.Error("a broken file is no error")
		}
		if err := works(); err != nil {
			t.Error(err)
		}
	}
}
