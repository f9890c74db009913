package commands

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

// reading holds the flags of the commands that read the streams.
type reading struct {
	program *Program
	// stream is inspect.Streams.Stream.
	stream string
	// traceURL is a template of links to traces: see events.ValidateTraceURL.
	traceURL string
}

// addStream adds the flag of commands that can read the events of many clusters.
func (r *reading) addStream(flags *pflag.FlagSet) {
	flags.StringVar(&r.stream, "stream", "",
		"`name` of a stream with the events of many clusters, such as FLEET on a hub; empty reads the streams of --cluster")
}

// addTraceURL adds the flag of commands that link to traces.
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

// streams returns the streams to read.
func (r *reading) streams(ctx context.Context) (inspect.Streams, error) {
	streams, err := r.program.Streams(ctx)
	streams.Stream = r.stream
	return streams, err
}
