package bus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// as connects by the user a of an account from now on.
func (s *ownServer) as(account string) {
	s.url = func() string { return strings.Replace(s.ClientURL(), "nats://", "nats://"+account+":a@", 1) }
}

func TestAnAccountThatIsTooSmallForTheStreamsIsToldWithBothNumbers(t *testing.T) {
	tests := []struct{ name, limit, want string }{
		{"COUNT", "max_streams: 1", "HISTORY: the nats account: max_streams is 1, want 3 or more: "},
		{"SPACE", "max_file: 10MB", "DEADLETTERS: the nats account: max_file is 10485760, want 16777216 or more: "},
		{"SIZE", "disk_max_stream_bytes: 1MB", "HISTORY: the nats account: disk_max_stream_bytes is 1048576, want 536870912 or more: "},
		{"SIZED", "max_bytes_required: true", "CHANGES: the nats account: max_bytes_required is true, and max_bytes of CHANGES is -1: "},
	}
	var accounts strings.Builder
	for _, tt := range tests {
		fmt.Fprintf(&accounts, "%s { jetstream { %s }, users: [{ user: %s, password: a }] }\n", tt.name, tt.limit, tt.name)
	}
	s := startWith(t, testkit.StoreDir(t), "jetstream { max_file: 2G }\naccounts {\n"+accounts.String()+"}")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.as(tt.name)
			js := s.jetstream()
			err := errorOf(t, func() error { return Declare(t.Context(), js, Declared(1)) })
			if err == nil || !strings.HasPrefix(err.Error(), "declaring stream "+tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
}

// A server that has no room itself tells nobody how much it has.
func TestAServerWithoutRoomIsNotTheAccounts(t *testing.T) {
	js := startSmall(t, testkit.StoreDir(t), "1MB").jetstream()
	err := errorOf(t, func() error { return Declare(t.Context(), js, Declared(1)) })
	if !isStorage(err) || strings.Contains(err.Error(), "account:") {
		t.Errorf("got %v, want what the server answers", err)
	}
}

func TestAStreamThatMayHaveNoMoreConsumersIsToldWithBothNumbers(t *testing.T) {
	s := startWith(t, testkit.StoreDir(t), `
		jetstream { max_file: 2G }
		accounts { FEW { jetstream { max_consumers: 2 }, users: [{ user: FEW, password: a }] } }`)
	s.as("FEW")
	s.declare()
	b, js := s.bus(), s.jetstream()
	for _, stream := range []string{events.StreamChanges, events.StreamHistory} {
		for i := range 2 {
			config := jetstream.ConsumerConfig{Durable: fmt.Sprint("another-", i), AckPolicy: jetstream.AckExplicitPolicy}
			testkit.Must(t, errIn(answer(t, func() (jetstream.Consumer, error) { return js.CreateOrUpdateConsumer(t.Context(), stream, config) })))
		}
	}
	filter := events.KindFilter(testCluster, events.KindSecret)
	const ofChanges = "the nats account or stream CHANGES: max_consumers is 2, want 16 or more: "
	durable := func(stream jetstream.Stream) error {
		_, err := ensureConsumer(t.Context(), stream, "mine", ConsumeOptions{}.consumerConfig("mine"), b.logger)
		return err
	}
	for _, tt := range []struct {
		name, want string
		begin      func() error
	}{
		{"a reading", ofChanges, func() error {
			_, err := b.Oldest(t.Context(), []string{filter})
			return err
		}},
		{"a follower", ofChanges, func() error {
			_, err := (&epoch{bus: b}).consumer(t.Context(), filter)
			return err
		}},
		{"the webhook", ofChanges, func() error { return durable(b.changes) }},
		{"notifications", "the nats account or stream HISTORY: max_consumers is 2: ", func() error { return durable(b.history) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := errorOf(t, tt.begin); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
