package install

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwards has the API server forward ports to what the pods run, as a kubelet does for kubectl port-forward: a server on this machine is the kubelet of
// all nodes from now on, and the port of the embedded NATS is the only one.
func (k *kubelet) forwards() {
	k.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/"+k.namespace+"/{pod}", k.forward)
	server := httptest.NewTLSServer(mux) // An API server without a CA for kubelets checks no certificate.
	k.Cleanup(server.Close)
	address := server.Listener.Addr().(*net.TCPAddr)
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/status/addresses", "value": []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}},
		{"op": "add", "path": "/status/daemonEndpoints", "value": map[string]any{"kubeletEndpoint": map[string]any{"Port": address.Port}}},
	})
	if err != nil {
		k.Fatal(err)
	}
	nodes, err := k.client.CoreV1().Nodes().List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatal(err)
	}
	for _, node := range nodes.Items {
		if _, err := k.client.CoreV1().Nodes().Patch(k.Context(), node.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			k.Fatal(err)
		}
	}
}

// forward serves the connections to a pod: two streams each, of which one is for what goes wrong.
func (k *kubelet) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streams := make(chan httpstream.Stream, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if conn == nil {
		return
	}
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	defer func() { _ = conn.Close() }()
	failures := map[string]httpstream.Stream{}
	for {
		select {
		case <-conn.CloseChan():
			return
		case stream := <-streams:
			id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				failures[id] = stream
				continue
			}
			failure := failures[id]
			forwarding.Go(func() { k.forwardStream(stream, failure) })
		}
	}
}

func (k *kubelet) forwardStream(stream, failure httpstream.Stream) {
	defer failure.Close()
	defer stream.Close()
	pod, err := new(net.Dialer).DialContext(k.Context(), "tcp", k.nats)
	if err != nil {
		_, _ = io.WriteString(failure, err.Error())
		return
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer pod.Close()
	sending.Go(func() {
		_, _ = io.Copy(pod, stream)
		_ = pod.Close()
	})
	_, _ = io.Copy(stream, pod)
	_ = stream.Reset()
}
