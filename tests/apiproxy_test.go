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
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/keyturn/keyturn/tests/programs"
)

// throughProxy returns a kubeconfig of the actuator's account for a proxy in front of the API server. It has handle called with the body of
// each patch: pass passes the patch on, and returns the status of the answer. Lose does, too, but whoever sent the patch gets no answer before handle
// returns. The calls are made one at a time by who patches one workload.
func (r *rig) throughProxy(handle func(patch string, pass, lose func() int)) string {
	r.Helper()
	config, err := plane.ServiceAccountConfig(r.Context(), programs.SystemNamespace, "keyturn-actuator")
	if err != nil {
		r.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		r.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		r.Fatal(err)
	}
	// A watch is passed on event by event.
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1}
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
		handle(string(body), func() int {
			answered := &answer{ResponseWriter: w}
			proxy.ServeHTTP(answered, request)
			return answered.status
		}, func() int {
			lost := httptest.NewRecorder()
			// The API server is to have it even if the sender waits no longer.
			proxy.ServeHTTP(lost, request.WithContext(context.WithoutCancel(request.Context())))
			return lost.Code
		})
	}))
	r.Cleanup(func() {
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
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		r.Fatal(err)
	}
	return path
}

// lostAnswers is how many rolls of stallingAfter have no answer. It is half of those that an actuator has under way at a time.
const lostAnswers = 8

// stallingAfter returns a kubeconfig with which the actuator rolls so many workloads. It also rolls the next [lostAnswers], but has no answer for them
// until the test ends, as for all patches after those, which never arrive.
func (r *rig) stallingAfter(rolls int64) string {
	r.Helper()
	var sent atomic.Int64
	ended := make(chan struct{})
	kubeconfig := r.throughProxy(func(patch string, pass, lose func() int) {
		if !strings.Contains(patch, "keyturn.dev~1revision") {
			pass()
			return
		}
		nth := sent.Add(1)
		send := pass
		if nth > rolls {
			send = lose
		}
		if nth <= rolls+lostAnswers && send() != http.StatusOK {
			sent.Add(-1) // It has rolled nothing.
		}
		if nth > rolls {
			<-ended
		}
	})
	r.Cleanup(func() { close(ended) })
	return kubeconfig
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
