package kubelet

import (
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Exec serves a request to run a command in a container, like a kubelet. Run gets the command and returns its output. There is no input and no
// terminal, and the exit code is always 0.
func Exec(w http.ResponseWriter, r *http.Request, run func(command []string) string) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	expected := 1 // the stream of errors
	for _, name := range []string{"input", "output", "error", "stdin", "stdout", "stderr"} {
		if value := query.Get(name); value == "1" || value == "true" {
			expected++
		}
	}
	streams := make(chan httpstream.Stream, expected)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	byType := make(map[string]httpstream.Stream)
	for len(byType) < expected {
		select {
		case <-conn.CloseChan():
			return
		case stream := <-streams:
			byType[stream.Headers().Get(corev1.StreamType)] = stream
		}
	}
	if out := byType[corev1.StreamTypeStdout]; out != nil {
		_, _ = io.WriteString(out, run(query["command"]))
	}
	_ = json.NewEncoder(byType[corev1.StreamTypeError]).Encode(metav1.Status{Status: metav1.StatusSuccess})
	for _, stream := range byType {
		_ = stream.Close()
	}
	<-conn.CloseChan() // the client has read everything by then
}
