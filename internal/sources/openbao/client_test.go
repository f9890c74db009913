package openbao

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAStoreIsAskedOverTLSWithACertificateThatMayChange(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return folder + "/" + name }
	certificate(t, file("server.crt"), file("server.key"), 1)
	clients := certificate(t, file("client.crt"), file("client.key"), 2)
	pair, err := tls.LoadX509KeyPair(file("server.crt"), file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	serials := make(chan int64, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serials <- r.TLS.PeerCertificates[0].SerialNumber.Int64()
		// A connection keeps its certificate.
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, `{"data":{"secret":{"old/":{"type":"kv"}}}}`)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	config := fmt.Sprintf(`stores: [{name: main, address: %q, auth: {token: canary}, tls: {caCertFile: %q, clientCertFile: %q, clientKeyFile: %q}, poll: {interval: 1s, mounts: [old]}}]`,
		server.URL, file("server.crt"), file("client.crt"), file("client.key"))
	clock := &aheadClock{}
	r := newRig(t, config, func(o *Options) { o.Now = clock.now })
	stop := r.start(t)
	if got := testkit.Receive(t, "a request", serials, r.log.String); got != 2 {
		t.Errorf("the certificate is that with the serial %d, want 2", got)
	}
	certificate(t, file("client.crt"), file("client.key"), 3)
	clock.add(recheck)
	testkit.Await(t, "the certificate is that with the serial 3", func(ctx context.Context) bool {
		// The poller has just asked for the mounts, and asks for them again in some seconds.
		_, err := r.feed.pipelines[0].client.list(ctx, "root", "old", "")
		got := int64(0)
		for len(serials) > 0 {
			got = <-serials
		}
		return err == nil && got == 3
	}, r.log.String)
	stop()

	// A certificate of another authority is rejected.
	if err := os.Rename(file("client.crt"), file("server.crt")); err != nil {
		t.Fatal(err)
	}
	certificate(t, file("client.crt"), file("client.key"), 4)
	r = newRig(t, config, nil)
	r.start(t)
	testkit.Eventually(t, "it is logged", func() bool { return strings.Contains(r.log.String(), "certificate") })
	for len(serials) > 0 {
		if got := <-serials; got == 4 {
			t.Error("a server with another certificate was asked")
		}
	}
}

func TestErrorsOfAStoreAreOneLineWithoutItsPages(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		want, kind string
	}{
		{name: "an error of the store", status: 403, body: `{"errors":["1 error occurred:\n\t* permission denied\n\n"]}`, want: "requesting x: the store answered 403: 1 error occurred: * permission denied", kind: "forbidden"},
		{name: "a long one", status: 500, body: `{"errors":["` + strings.Repeat("x", 500) + `"]}`, want: "requesting x: the store answered 500: " + strings.Repeat("x", maxMessage), kind: "status-500"},
		{name: "a page of a proxy", status: 502, body: "<html>canary</html>", want: "requesting x: the store answered 502", kind: "status-502"},
		{name: "a sealed store", status: 503, body: `{"errors":["Vault is sealed"]}`, want: "requesting x: the store answered 503: Vault is sealed", kind: "sealed-or-standby"},
		{name: "an answer that is not JSON", status: 200, body: "canary", want: "requesting x: malformed answer", kind: "malformed"},
		{name: "what is another JSON", status: 200, body: `{"data":{"current_version":1,"versions":"canary"}}`, want: "requesting x: malformed answer", kind: "malformed"},
		{name: "no connection", status: 0, want: `requesting x: Get "http://bao/v1/x": dialing: unexpected EOF`, kind: "unreachable"},
		{name: "nothing", status: 404, body: "", want: "path not found", kind: "other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("x", test.status, test.body)
			r := newRig(t, askOnly, func(o *Options) { o.Transport = store })
			_, err := r.feed.pipelines[0].client.get(t.Context(), "root", "x", nil, &metadata{})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff([]string{test.want, test.kind}, []string{err.Error(), kind(err)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoRequestIsMadeOfAPathThatLeadsElsewhere(t *testing.T) {
	store := newFakeStore(kv2)
	r := newRig(t, askOnly, func(o *Options) { o.Transport = store })
	for _, path := range []string{"secret/metadata/../../sys/seal", "secret//x", "secret/./x", ""} {
		if _, err := r.feed.pipelines[0].client.get(t.Context(), "root", path, nil, &metadata{}); err == nil {
			t.Errorf("%q was asked for", path)
		}
	}
	if len(store.asked) > 0 {
		t.Errorf("asked for %v", store.asked)
	}
}
