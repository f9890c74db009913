package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// TestOnlyTheActuatorsUserHasADeadLetterReplayed replays with the users of nats.conf, and without one more permission than they had.
func TestOnlyTheActuatorsUserHasADeadLetterReplayed(t *testing.T) {
	g := newGuarded(t)
	g.declare()
	change := numbered(1)
	change.Cluster = "prod"
	g.works("watcher", func(b *events.Bus) error {
		natstest.Publish(t, func() error {
			_, err := b.PublishChange(t.Context(), change, 0)
			return err
		})
		return nil
	})
	g.works("actuator", func(b *events.Bus) error {
		frozen := &events.RejectError{Reason: events.ReasonPatchDenied, Err: errors.New("frozen")}
		consuming, stop := context.WithCancel(t.Context())
		deliveries, consumed := make(chan *events.Delivery), make(chan error, 1)
		defer func() {
			stop()
			if err := <-consumed; err != nil {
				t.Error(err)
			}
		}()
		go func() {
			consumed <- b.Consume(consuming, events.ConsumeOptions{Durable: "actuator-prod"}, func(ctx context.Context, d *events.Delivery) {
				if d.Replay == 0 && d.Deliveries > 1 { // Its dead letter had no answer in time.
					d.Done(ctx, frozen)
					return
				}
				select {
				case deliveries <- d:
				case <-ctx.Done():
				}
			})
		}()
		testkit.Receive(t, "the event is delivered", deliveries).Done(t.Context(), frozen)
		var letters []events.DeadLetter
		testkit.Await(t, "it is a dead letter", func(ctx context.Context) bool {
			var err error
			letters, err = b.DeadLetters(ctx, 10)
			return err == nil && len(letters) == 1
		})
		for user, may := range map[string]bool{"reader": false, "watcher": false, "actuator": true} {
			connection, _ := g.connect(user)
			asking, err := events.Open(t.Context(), connection, "prod", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := natstest.Answered(t, func() error { return asking.CanReplay(t.Context(), letters[0], nil) }); err != nil {
				t.Errorf("the %s does not see that it can be replayed: %v", user, err)
			}
			err = asking.Replay(t.Context(), letters[0])
			if may && events.IsSilence(err) { // While the disk is busy, the server stores it later than it is waited for.
				testkit.Await(t, "the request of the "+user+" is stored", func(ctx context.Context) bool {
					letters, err = b.DeadLetters(ctx, 10)
					return err == nil && len(letters) == 1 && !letters[0].Replayed.IsZero()
				})
			}
			if (err == nil) != may {
				t.Errorf("the %s asks for a replay: got %v, want it accepted: %t", user, err, may)
			}
		}
		d := testkit.Receive(t, "the replay is delivered", deliveries)
		if d.Change.ID() != change.ID() || d.Replay == 0 {
			t.Errorf("delivered is %s, replay %d, want a replay of %s", d.Change.ID(), d.Replay, change.ID())
		}
		d.Done(t.Context(), nil)
		return nil
	})
}
