package install

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	kubeletplay "github.com/keyturn/keyturn/tests/testkit/kubelet"
)

// forwards has the API server forward ports to what the pods run, run commands beside the actuator, and read logs, as a kubelet does for kubectl
// port-forward, kubectl exec and kubectl logs: a server on this machine is the kubelet of all nodes from now on, and the port of NATS is
// the only one.
func (k *kubelet) forwards() {
	k.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/"+k.namespace+"/{pod}", func(w http.ResponseWriter, r *http.Request) { kubeletplay.Forward(w, r, k.nats) })
	mux.HandleFunc("/exec/"+k.namespace+"/{pod}/actuator", func(w http.ResponseWriter, r *http.Request) {
		kubeletplay.Exec(w, r, func(command []string) string { return k.exec("actuator", command...) })
	})
	mux.HandleFunc("/containerLogs/"+k.namespace+"/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := k.logs.Load(r.PathValue("container")); ok {
			_, _ = io.WriteString(w, lastLines(p.(*programs.Program).Output(), r.URL.Query().Get("tailLines")))
		}
	})
	server := httptest.NewTLSServer(mux) // An API server without a CA for kubelets checks no certificate.
	k.Cleanup(server.Close)
	address := server.Listener.Addr().(*net.TCPAddr)
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/status/addresses", "value": []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}},
		{"op": "add", "path": "/status/daemonEndpoints", "value": map[string]any{"kubeletEndpoint": map[string]any{"Port": address.Port}}},
	})
	testkit.Must(k, err)
	nodes, err := k.client.CoreV1().Nodes().List(k.Context(), metav1.ListOptions{})
	testkit.Must(k, err)
	for _, node := range nodes.Items {
		if _, err := k.client.CoreV1().Nodes().Patch(k.Context(), node.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			k.Fatal(err)
		}
	}
}

// lastLines returns the last lines of a log, and all if it is not said how many.
func lastLines(log, count string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(log, "\n"), "\n")
	if last, err := strconv.Atoi(count); err == nil && last < len(lines) {
		lines = lines[len(lines)-last:]
	}
	return strings.Join(lines, "") + "\n"
}
