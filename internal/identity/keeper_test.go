package identity

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAClaimThatTheStreamHasLostIsMadeAgain(t *testing.T) {
	bus, stream := newStream(t)
	keep, err := answered(t, Claim, Options{Client: cluster("uid-one"), Interval: 10 * time.Millisecond}, bus)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "the first cluster", keep)
	second := Options{Client: cluster("uid-two")}
	for range 2 {
		if err := stream.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "the name is claimed again", func(ctx context.Context) bool {
			_, err := bus.Last(ctx, events.ClaimSubject("prod-eu"))
			return err == nil
		})
		for name, do := range map[string]func(context.Context, Options, *events.Bus) (Keep, error){"the watcher": Claim, "the actuator": Check} {
			if _, err := answered(t, do, second, bus); !errors.Is(err, events.ErrClaimed) {
				t.Errorf("%s of a second cluster: got %v, want it refused", name, err)
			}
		}
	}
}

func TestAClusterWhoseNameWasTakenMeanwhileEnds(t *testing.T) {
	for name, do := range map[string]func(context.Context, Options, *events.Bus) (Keep, error){"a watcher": Claim, "an actuator": Check} {
		t.Run(name, func(t *testing.T) {
			bus, stream := newStream(t)
			first := Options{Client: cluster("uid-one"), Interval: 10 * time.Millisecond}
			if _, err := answered(t, Claim, first, bus); err != nil {
				t.Fatal(err)
			}
			keep, err := answered(t, do, first, bus)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := answered(t, Claim, Options{Client: cluster("uid-two")}, bus); err != nil {
				t.Fatal(err)
			}
			if err := keep(t.Context()); !errors.Is(err, events.ErrClaimed) {
				t.Errorf("got %v, want that another cluster has the name", err)
			}
		})
	}
}

func TestAStreamThatCannotBeReadForLongIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tries := 0
		k := &keeper{
			cluster: "prod-eu", interval: defaultInterval, log: slog.New(slog.NewTextHandler(&log, nil)),
			claim: func(context.Context) error {
				if tries++; tries == 5 {
					return nil
				}
				return errors.New("no responders")
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*defaultInterval+time.Second)
		defer cancel()
		if err := k.keep(ctx); err != nil || tries != 10 {
			t.Errorf("got %v after %d tries, want 10 tries", err, tries)
		}
		if got := strings.Count(log.String(), "cluster name neither claimed nor checked"); got != 2 {
			t.Errorf("it is logged %d times, want once before it worked and once after:\n%s", got, &log)
		}
	})
}
