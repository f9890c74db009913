package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/workload"
)

// Program is the program that has the commands. Its functions are called when a command runs, after its flags are set.
type Program struct {
	// Settings are the settings of the actuator with which commands decide. Flags of the commands set some of them, and the program
	// sets the others.
	Settings *actuate.Options
	// Narrow makes output for people fit into 100 columns.
	Narrow bool
	// Unknown returns the names of the Secrets with settings of the actuator that are not known here. Nil means that all settings are known.
	Unknown func() []string
	// Clients returns the clients that read workloads.
	Clients func() (workload.Clients, error)
	// Streams returns how to reach the streams, and the name of the cluster.
	Streams func(ctx context.Context) (inspect.Streams, error)
}

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

func (r *reading) streams(ctx context.Context) (inspect.Streams, error) {
	streams, err := r.program.Streams(ctx)
	streams.Stream = r.stream
	return streams, err
}

// open connects to the streams to read, and returns the name of the cluster. The returned function disconnects.
func (r *reading) open(ctx context.Context) (reader *bus.Reader, cluster string, disconnect func(), err error) {
	streams, err := r.streams(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	reader, disconnect, err = streams.OpenReader(ctx)
	return reader, streams.Cluster, disconnect, err
}

// output is the value of the flag --output.
type output inspect.Format

var formats = []string{string(inspect.Table), string(inspect.Wide), string(inspect.JSON), string(inspect.YAML)}

const allFormats = "table, wide, json or yaml"

// AddOutput adds the flag --output to a command. The default is a table. About is appended to the help, and may be empty.
func AddOutput(cmd *cobra.Command, format *inspect.Format, about string) {
	*format = inspect.Table
	cmd.Flags().VarP((*output)(format), "output", "o", "output `format`: "+allFormats+about)
	// The only errors are that the flag does not exist, or is already registered.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *output) String() string { return string(*o) }

// Set sets the format.
func (o *output) Set(text string) error {
	if !slices.Contains(formats, text) {
		return errors.New("want " + allFormats)
	}
	*o = output(text)
	return nil
}

// Type returns the name of the type in the help.
func (o *output) Type() string { return "format" }
