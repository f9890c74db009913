package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatIsSilenceIsWorthRepeating(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"the time of a request is over", context.DeadlineExceeded, true},
		{"a server runs, and not JetStream", nats.ErrNoResponders, true},
		{"the connection is lost", nats.ErrDisconnected, true},
		{"the servers have no leader", &jetstream.APIError{Code: 503, ErrorCode: errCodeNoClusterLeader}, true},
		{"another answer", &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}, false},
		{"the caller has ended", context.Canceled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err
			if err != nil {
				err = errors.Join(nil, fmt.Errorf("publishing: %w", err)) // as the caller of PublishOutcomes has it
			}
			testkit.WantEqual(t, "silence", tt.want, IsSilence(err))
		})
	}
}
