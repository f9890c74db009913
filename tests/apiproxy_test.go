package tests

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// lostAnswers is how many rolls of stallingAfter have no answer. It is half of those that an actuator has under way at a time.
const lostAnswers = 8

// stallingAfter returns a kubeconfig of the actuator's account for a proxy in front of the API server, with which it rolls so many workloads. It also
// rolls the next [lostAnswers], but has no answer for them until the test ends, as for all patches after those, which never arrive.
func (r *rig) stallingAfter(rolls int64) string {
	r.Helper()
	config := configOf(r, programs.SystemNamespace, "keyturn-actuator")
	target, err := url.Parse(config.Host)
	testkit.Must(r, err)
	transport, err := rest.TransportFor(config)
	testkit.Must(r, err)
	// A watch is passed on event by event.
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1}
	var sent atomic.Int64
	ended := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPatch {
			proxy.ServeHTTP(w, request)
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, "the patch ended early", http.StatusBadRequest)
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("keyturn.dev~1revision")) {
			proxy.ServeHTTP(w, request)
			return
		}
		nth := sent.Add(1)
		answered := &answer{ResponseWriter: w}
		if nth > rolls {
			answered.ResponseWriter = httptest.NewRecorder()
			// The API server is to have it even if the sender waits no longer.
			request = request.WithContext(context.WithoutCancel(request.Context()))
		}
		if nth <= rolls+lostAnswers {
			if proxy.ServeHTTP(answered, request); answered.status != http.StatusOK {
				sent.Add(-1) // It has rolled nothing.
			}
		}
		if nth > rolls {
			<-ended
		}
	}))
	r.Cleanup(func() {
		close(ended)
		// The error is that of a listener that is closed once more. Watches may still be open.
		_ = server.Config.Close()
		server.Close()
	})
	kubeconfig := api.NewConfig()
	kubeconfig.Clusters["proxy"] = &api.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	kubeconfig.Contexts["proxy"] = &api.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	path := filepath.Join(r.TempDir(), "proxy.kubeconfig")
	testkit.Must(r, clientcmd.WriteToFile(*kubeconfig, path))
	return path
}

// answer knows the status of a response.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}
