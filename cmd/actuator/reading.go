package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/program"
)

// reading holds the flags of the commands that read the streams.
type reading struct {
	streams inspect.Streams
	// traceURL is a template of links to traces: see events.ValidateTraceURL.
	traceURL string
}

// addTraceURL adds the flag of the commands that link to traces.
func (r *reading) addTraceURL(flags *pflag.FlagSet) {
	flags.StringVar(&r.traceURL, "trace-url", "",
		"`URL` of a trace, with {traceID} for its ID, such as http://jaeger:16686/trace/{traceID}; empty prints the ID alone")
}

func (r *reading) validateTraceURL() error {
	if err := events.ValidateTraceURL(r.traceURL); err != nil {
		return fmt.Errorf("--trace-url: %w", err)
	}
	return nil
}

// from returns the streams to read, once the flags are parsed.
func (r *reading) from(a *program.Actuator) *inspect.Streams {
	r.streams.Connect, r.streams.Cluster = a.Process.NATS, a.Process.Cluster
	return &r.streams
}
