package fleet

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestTheOperatorOfFleetKeepsWhatAClusterHasDelivered takes a snapshot as docs/operate/alerts.md says, which is larger than what a server sends before
// it wants an answer on another subject.
func TestTheOperatorOfFleetKeepsWhatAClusterHasDelivered(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	h := render(t, "eu")
	h.start("eu")
	h.declareFleet()
	content := make([]byte, 16<<10)
	for i := range 4 {
		if _, err := rand.Read(content); err != nil { // which cannot be compressed
			t.Fatal(err)
		}
		h.publishData("eu", fmt.Sprint("secret.default.db", i), fmt.Sprint("eu/", i), content)
	}
	h.caughtUp("eu")
	if size := snapshot(t, h.connect("fleet-operator", nil), "FLEET-eu", 4<<10); size < 4*len(content) {
		t.Errorf("the snapshot has %d bytes, want at least those of the events", size)
	}
}

// snapshot receives a snapshot of a stream in chunks of some bytes, of which the server sends one before it wants an answer. It returns its size.
func snapshot(t *testing.T, connection *nats.Conn, stream string, chunk int) (size int) {
	t.Helper()
	inbox := connection.NewInbox()
	chunks, err := connection.SubscribeSync(inbox)
	testkit.Must(t, err)
	request, err := json.Marshal(map[string]any{"deliver_subject": inbox, "chunk_size": chunk, "window_size": chunk})
	testkit.Must(t, err)
	answer, err := connection.Request("$JS.API.STREAM.SNAPSHOT."+stream, request, testkit.Patience)
	testkit.Must(t, err)
	var refused struct{ Error *jetstream.APIError }
	if err := json.Unmarshal(answer.Data, &refused); err != nil || refused.Error != nil {
		t.Fatal(err, refused.Error)
	}
	for {
		msg, err := chunks.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != "204" {
				t.Fatalf("after %d bytes the server says %s %s", size, status, msg.Header.Get("Description"))
			}
			return size
		}
		if size += len(msg.Data); msg.Reply != "" {
			testkit.Must(t, msg.Respond(nil))
		}
	}
}
