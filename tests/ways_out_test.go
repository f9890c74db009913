package tests

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// collect adds what the streams, the API server and the programs show, including these Deployments.
func (c *canaries) collect(h *haystack, deployments ...string) {
	c.Helper()
	for _, name := range []string{events.StreamChanges, events.StreamHistory, events.StreamDeadLetters} {
		for _, msg := range c.messages(name) {
			h.add("stream "+name+" on "+msg.Subject(), wire(msg.Headers(), msg.Data()))
		}
	}
	for _, program := range []*programs.Program{c.watcher, c.actuator} {
		for component, path := range map[string]string{"metrics": "/metrics", "health": "/readyz"} {
			status, body, err := program.Get(c.Context(), component, path)
			if err != nil || status != http.StatusOK {
				c.Fatalf("%s of the %s: status %d, %v", path, program.Name(), status, err)
			}
			h.add(component+" of the "+program.Name(), []byte(body))
		}
	}
	for _, deployment := range deployments {
		h.add("explain", []byte(c.ask("explain", "deployment/"+deployment, "-n", c.namespace)))
	}
	h.add("dead-letters", []byte(c.ask("dead-letters")))
	c.collectObjects(h)
}

// collectObjects adds every object that the programs write, and those that are made from them.
func (c *canaries) collectObjects(h *haystack) {
	c.Helper()
	all := metav1.ListOptions{}
	add := func(name string, list any, err error) {
		c.Helper()
		testkit.Must(c, err)
		h.addJSON(c, name, list)
	}
	deployments, err := c.client.AppsV1().Deployments(c.namespace).List(c.Context(), all)
	add("Deployments", deployments, err)
	replicaSets, err := c.client.AppsV1().ReplicaSets(c.namespace).List(c.Context(), all)
	add("ReplicaSets", replicaSets, err)
	pods, err := c.client.CoreV1().Pods(c.namespace).List(c.Context(), all)
	add("Pods", pods, err)
	kubeEvents, err := c.client.CoreV1().Events(c.namespace).List(c.Context(), all)
	add("Events", kubeEvents, err)
	leases, err := c.client.CoordinationV1().Leases(metav1.NamespaceAll).List(c.Context(), all)
	add("Leases", leases, err)
}

// messages reads all that a stream holds.
func (r *rig) messages(stream string) []jetstream.Msg {
	r.Helper()
	consumer, err := r.jetstream().OrderedConsumer(r.Context(), stream, jetstream.OrderedConsumerConfig{})
	testkit.Must(r, err)
	pending := int(consumer.CachedInfo().NumPending)
	if pending == 0 {
		return nil
	}
	batch, err := consumer.Fetch(pending, jetstream.FetchMaxWait(patience))
	testkit.Must(r, err)
	var list []jetstream.Msg
	for msg := range batch.Messages() {
		list = append(list, msg)
	}
	testkit.Must(r, batch.Error())
	return list
}

// listenTo adds every message on NATS from now on, including those of JetStream's protocol.
func (r *rig) listenTo(h *haystack) {
	r.Helper()
	connection, err := r.dialNATS(nats.Timeout(patience))
	testkit.Must(r, err)
	r.Cleanup(connection.Close)
	subscription, err := connection.Subscribe(">", func(msg *nats.Msg) {
		h.add("a message on "+msg.Subject, append([]byte(msg.Subject+"\n"+msg.Reply+"\n"), wire(msg.Header, msg.Data)...))
	})
	testkit.Must(r, err)
	testkit.Must(r, subscription.SetPendingLimits(-1, -1))
	testkit.Must(r, connection.Flush())
}

// wire returns a message's header and data as sent.
func wire(header nats.Header, data []byte) []byte {
	var content bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(&content, "%s: %s\n", key, strings.Join(header[key], "\n"))
	}
	content.Write(data)
	return content.Bytes()
}

// receiveSpans starts an OTLP receiver that adds everything it receives, and returns its address.
func receiveSpans(t *testing.T, h *haystack) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil || request.Header.Get("Content-Encoding") != "" {
			t.Errorf("OTLP: %v, encoding %q, want a plain body", err, request.Header.Get("Content-Encoding"))
		}
		h.add("an OTLP request to "+request.URL.Path, body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// addFiles adds the files on disk: the logs, and the store of the embedded NATS.
func addFiles(t *testing.T, h *haystack, dir, but string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == but {
			return err
		}
		content, err := os.ReadFile(path)
		h.add("the file "+strings.TrimPrefix(path, dir+"/"), content)
		return err
	})
	testkit.Must(t, err)
}
