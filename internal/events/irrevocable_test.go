package events

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// alteration alters a field of a stream.
type alteration struct {
	field string
	// stream is its index in Declared.
	stream int
	alter  func(*jetstream.StreamConfig)
}

// notTakenBack is what a server does not take back.
var notTakenBack = []alteration{
	{"deny_delete", 0, func(c *jetstream.StreamConfig) { c.DenyDelete = true }},
	{"deny_purge", 0, func(c *jetstream.StreamConfig) { c.DenyPurge = true }},
	{"deny_purge", 1, func(c *jetstream.StreamConfig) { c.DenyPurge = true }},
	{"allow_msg_schedules", 0, func(c *jetstream.StreamConfig) { c.AllowMsgSchedules, c.AllowRollup = true, true }},
	{"allow_msg_ttl", 2, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
	{"sealed", 0, func(c *jetstream.StreamConfig) { c.Sealed = true }},
	{"sealed", 2, func(c *jetstream.StreamConfig) { c.Sealed = true }},
}

func (a alteration) String() string {
	return fmt.Sprintf("%s on %s", a.field, Declared(1)[a.stream].Name)
}

// alter alters a stream, and a limit of it that can be repaired.
func (s *testServer) alter(a alteration) (jetstream.JetStream, jetstream.StreamConfig) {
	s.t.Helper()
	altered := Declared(1)[a.stream]
	a.alter(&altered)
	altered.MaxMsgs = 1
	js := s.jetstream()
	if _, err := js.UpdateStream(s.t.Context(), altered); err != nil {
		s.t.Fatal(err)
	}
	return js, altered
}

// wantRepaired checks that the limit is as declared.
func wantRepaired(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	must(t, err)
	if got := stream.CachedInfo().Config.MaxMsgs; got != -1 {
		t.Errorf("max_msgs of %s is %d: what can be repaired is not", name, got)
	}
}
