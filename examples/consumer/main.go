// The consumer prints the events of a stream: what changed and with what outcome, in any cluster. It imports no Keyturn package: the events
// are CloudEvents in binary mode on NATS, which the official SDK reads.
//
//	go run ./examples/consumer -url nats://hub:4222 -stream FLEET -filter 'keyturn.v1.*.rollout.>'
//
// Its consumer is durable: the server remembers what was acked, so a restarted program continues there. Unacked events are redelivered, so a
// program that acts on events must handle duplicates, which have the same id.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	address := flag.String("url", nats.DefaultURL, "`URL` of the NATS server")
	creds := flag.String("creds", "", "`file` with the NATS user's credentials")
	stream := flag.String("stream", "HISTORY", "`name` of the stream: HISTORY in a cluster, or the stream of a hub")
	filter := flag.String("filter", "keyturn.history.v1.*.rollout.>", "`subject` filter")
	durable := flag.String("durable", "example", "`name` of the durable consumer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var options []nats.Option
	if *creds != "" {
		options = append(options, nats.UserCredentials(*creds))
	}
	if err := run(ctx, *address, *stream, *filter, *durable, os.Stdout, options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run consumes until ctx is done.
func run(ctx context.Context, address, stream, filter, durable string, out io.Writer, options ...nats.Option) error {
	connection, err := nats.Connect(address, options...)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: durable, FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("creating consumer %s of stream %s: %w", durable, stream, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", stream, err)
		}
		e, err := read(msg)
		if err != nil {
			// Retrying cannot help, so do not redeliver it.
			fmt.Fprintf(os.Stderr, "%s: %v\n", msg.Subject(), err)
			err = msg.TermWithReason("not a CloudEvent")
		} else {
			err = errors.Join(write(out, e), msg.Ack())
		}
		if err != nil {
			return err
		}
	}
}

// write prints one line per event. The data of an event is JSON; docs/reference/events.md lists its fields.
func write(out io.Writer, e *event.Event) error {
	extensions := e.Extensions()
	_, err := fmt.Fprintf(out, "%s %s %s %s %s\n",
		e.Time().UTC().Format(time.RFC3339), extensions["clustername"], e.Type(), e.Subject(), e.ID())
	return err
}

// read decodes a message in binary mode: each attribute is a percent-encoded header "ce-<name>", and the payload is the data.
func read(msg jetstream.Msg) (*event.Event, error) {
	headers := msg.Headers()
	version := spec.WithPrefix("ce-").Version(headers.Get("ce-specversion"))
	if version == nil {
		return nil, errors.New("not a CloudEvent in binary mode")
	}
	attributes := version.NewContext()
	for key := range headers {
		if !strings.HasPrefix(key, "ce-") || key == "ce-specversion" {
			continue
		}
		value, err := url.PathUnescape(headers.Get(key))
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", key, err)
		}
		if err := version.SetAttribute(attributes, key, value); err != nil {
			return nil, fmt.Errorf("header %s: %w", key, err)
		}
	}
	e := &event.Event{Context: attributes, DataEncoded: msg.Data()}
	return e, e.Validate()
}
