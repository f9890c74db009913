package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/process"
)

// fleetInterval is how often the streams of a hub are read. Each time, each stream lists all its subjects.
const fleetInterval = 5 * time.Minute

// FleetOptions configure an actuator on a hub to count what clusters have delivered on subjects of other clusters.
type FleetOptions struct {
	// Stream is the stream with the events of many clusters. If it is empty, nothing is counted.
	Stream string
	// CredsFile has the credentials of a user that may read the stream. If it is empty, those of the actuator are used.
	CredsFile string
}

// AddFlags adds the flags of the options.
func (o *FleetOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Stream, "fleet-stream", "",
		"`name` of a stream with the events of many clusters, such as FLEET on a hub, to measure what clusters deliver on subjects of others")
	flags.StringVar(&o.CredsFile, "fleet-creds", "",
		"`file` with the credentials of a NATS user that may read --fleet-stream; empty uses those of --nats-creds")
}

// validate returns an error if the flags contradict each other.
func (o *FleetOptions) validate(embed bool) error {
	if o.Stream == "" && o.CredsFile != "" {
		return errors.New("--fleet-creds: needs --fleet-stream")
	}
	if o.Stream != "" && embed {
		return errors.New("--fleet-stream: set with --nats-embedded, want --nats-url: the stream is on the servers of a hub")
	}
	return nil
}

// watchFleet counts what clusters have delivered on subjects of others until the program ends. It does not wait for a connection: the stream is
// in a separate account, whose user may be missing.
func (a *Actuator) watchFleet(ctx context.Context, r *process.Runtime) error {
	if a.Fleet.Stream == "" {
		return nil
	}
	watch, err := events.NewFleetWatch(a.Fleet.Stream, r.Meter("events"), r.Logger)
	if err != nil {
		return fmt.Errorf("watching %s: %w", a.Fleet.Stream, err)
	}
	options := r.ConnectOptions()
	if a.Fleet.CredsFile != "" {
		options.CredsFile = a.Fleet.CredsFile
	}
	background(ctx, r, "fleet", func(ctx context.Context) {
		connection, err := events.Connect(ctx, options)
		if err != nil {
			if ctx.Err() == nil {
				r.Logger.ErrorContext(ctx, "cannot connect as the user of --fleet-creds", "stream", a.Fleet.Stream, "err", err)
			}
			return
		}
		defer connection.Close()
		watch.Run(ctx, connection, a.fleetInterval)
	})
	return nil
}
