package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// takeoverWait is how long the events of an actuator that died wait for the next one, which takes about the same time to become the leader.
	takeoverWait = leaseDuration
	// maxInFlight is the maximum number of events in flight. A rollout that waits for its turn keeps its event in flight, and must not block
	// the delivery of others. The budget of a namespace allows it 20,000 at once, and 5,000 more each hour.
	maxInFlight = 100_000
	// forgetDryRun is how long the server keeps the consumer of a dry run that has ended. A later dry run reads the state of all sources
	// again, and as it patches nothing, nothing is lost.
	forgetDryRun = 7 * 24 * time.Hour
)

// consumeOptions returns the options of the consumer of CHANGES.
func consumeOptions(options Options, onReject func(context.Context, string)) events.ConsumeOptions {
	consume := events.ConsumeOptions{
		Durable: durable(options), StoresFrom: options.StoresFrom, MaxAckPending: maxInFlight, AckWait: takeoverWait, OnReject: onReject,
	}
	if options.DryRun {
		consume.ForgetAfter = forgetDryRun
	}
	return consume
}

// durable returns the name of the consumer of CHANGES.
func durable(options Options) string {
	name := "actuator-" + options.Cluster
	if options.DryRun {
		// A dry run must not advance the real consumer.
		return name + "-dry-run"
	}
	return name
}
