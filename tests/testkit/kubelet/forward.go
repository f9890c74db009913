package kubelet

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Forward serves a request for port forwarding, like a kubelet. It forwards every port to the given address, and returns when the connection
// has ended.
func Forward(w http.ResponseWriter, r *http.Request, address string) {
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
	failures := make(map[string]httpstream.Stream) // a connection has two streams, one of which is for errors
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
			forwarding.Go(func() { forward(r.Context(), stream, failure, address) })
		}
	}
}

func forward(ctx context.Context, stream, failure httpstream.Stream, address string) {
	defer failure.Close()
	defer stream.Close()
	pod, err := new(net.Dialer).DialContext(ctx, "tcp", address)
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
