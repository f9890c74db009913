package tests

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/keyturn/keyturn/tests/programs"
)

// throughProxy returns a kubeconfig of the actuator's account for a proxy in front of the API server. It has handle called with the body of
// each patch: pass passes the patch on, and returns the status of the answer. The calls are made one at a time by who patches one workload.
func (r *rig) throughProxy(handle func(patch string, pass func() int)) string {
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

// answer knows the status of a response.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}
