package events

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestHistoryMissesNothing shows why publishers write HISTORY: CHANGES drops superseded events at once, HISTORY has all of
// them.
func TestHistoryMissesNothing(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	const burst, subjects = 1000, 3
	want := make(map[string]bool)
	var last [subjects]uint64
	for i := range burst {
		c := version(fmt.Sprintf("db-%d", i%subjects), fmt.Sprint(i+1))
		last[i%subjects] = mustPublish(t, b, c, last[i%subjects])
		want[b.messageID(c.ID())] = true
	}
	js := s.jetstream()
	for _, raw := range messages(t, js, StreamHistory) {
		delete(want, raw.Header.Get("Nats-Msg-Id"))
	}
	if len(want) != 0 {
		t.Errorf("HISTORY misses %d of %d changes", len(want), burst)
	}
	if n := len(messages(t, js, StreamChanges)); n != subjects {
		t.Errorf("CHANGES holds %d events, want %d", n, subjects)
	}
}

// TestRepublishLosesExpectations is the reason for docs/adr/0002-history-is-written-first.md. If it fails, the server has
// changed, and the decision can be revised.
func TestRepublishLosesExpectations(t *testing.T) {
	s := startServer(t)
	js := s.jetstream()
	for _, config := range []jetstream.StreamConfig{
		{Name: "TARGET", Subjects: []string{"target.>"}},
		{Name: "ORIGIN", Subjects: []string{"origin.>"}, MaxMsgsPerSubject: 1, RePublish: &jetstream.RePublish{Source: "origin.>", Destination: "target.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(data string, expected uint64) uint64 {
		ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "origin.a", Data: []byte(data)}, jetstream.WithExpectLastSequencePerSubject(expected))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	// An event on another subject makes the sequences of the two streams differ.
	if _, err := js.Publish(t.Context(), "target.other", nil); err != nil {
		t.Fatal(err)
	}
	publish("second", publish("first", 0))
	// The last message expects no sequence: once it is stored, everything before it was processed.
	if _, err := js.Publish(t.Context(), "origin.end", nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the last message is republished", func() bool {
		list := messages(t, js, "TARGET")
		return len(list) > 0 && list[len(list)-1].Subject == "target.end"
	})
	var got []string
	for _, raw := range messages(t, js, "TARGET") {
		if raw.Subject == "target.a" {
			got = append(got, string(raw.Data))
		}
	}
	if fmt.Sprint(got) != "[first]" {
		t.Errorf("the target has %v: republished messages with an expectation used to be refused", got)
	}
}
