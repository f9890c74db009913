package events

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestHistoryMissesNothing shows why publishers write HISTORY: CHANGES drops superseded events at once, HISTORY has all of
// them.
func TestHistoryMissesNothing(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	const burst, subjects = 300, 3
	want := make(map[string]bool)
	var last [subjects]uint64
	for i := range burst {
		c := version(fmt.Sprintf("db-%d", i%subjects), fmt.Sprint(i+1))
		last[i%subjects] = mustPublish(t, b, c, last[i%subjects])
		want[testCluster+"/"+c.ID()] = true
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

// TestHistoryHasWhatItDropsAsADuplicate shows why the answer of HISTORY that it has an event already is enough: what is stored on CHANGES
// under the same id is an event about the same state.
func TestHistoryHasWhatItDropsAsADuplicate(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "7")
	mustPublish(t, b, c, 0)
	// A stream that was declared again remembers no ids, like one whose window is over.
	must(t, js.DeleteStream(t.Context(), StreamChanges))
	must(t, Declare(t.Context(), js, 1))
	c.Time = c.Time.Add(time.Hour)
	mustPublish(t, b, c, 0)
	changes, history := messages(t, js, StreamChanges), messages(t, js, StreamHistory)
	if len(changes) != 1 || len(history) != 1 {
		t.Fatalf("CHANGES has %d events and HISTORY %d, want one each", len(changes), len(history))
	}
	if !bytes.Equal(changes[0].Data, history[0].Data) || changes[0].Header.Get("ce-id") != history[0].Header.Get("ce-id") {
		t.Errorf("CHANGES has %s, and HISTORY %s", changes[0].Data, history[0].Data)
	}
}

// TestRepublishLosesExpectations is the reason for docs/adr/0002-history-is-written-first.md. If it fails, the server has
// changed, and the decision can be revised.
func TestRepublishLosesExpectations(t *testing.T) {
	js := sharedServer(t).jetstream()
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
		must(t, err)
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

// Once the renewal time has passed, the failure of a certificate is published again, of the same object at the same version.
func TestThatACertificateExpiresIsNoDuplicateOfItsFailure(t *testing.T) {
	s := sharedServer(t)
	expiring := changeOf(KindCertificate, VerbFailed)
	mustPublish(t, s.bus(), expiring, 0)
	if id, want := messages(t, s.jetstream(), StreamHistory)[0].Header.Get("Nats-Msg-Id"), "prod-eu/"+expiring.ID()+"/expiring"; id != want {
		t.Errorf("the message id is %s, want %s", id, want)
	}
}
