// Evidence copies the stream HISTORY into files of lines that a shipper can put where nobody can change them: each message once, in order, with its
// sequence on the stream and the time at which the stream was created, so that what is missing shows. It imports no Keyturn package.
//
//	go run ./examples/evidence -url tls://keyturn-nats.keyturn-system.svc:4222 -seed reader.nk -ca ca.crt -dir history
//	go run ./examples/evidence -check -dir history
//
// A folder has a file for each day. The newest one is also the position of the program, so keep it; those of earlier days do not change any more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// quiet is how long a message of the stream may take to arrive. What has not come by then comes with the next pass.
const quiet = 10 * time.Second

func main() {
	address := flag.String("url", nats.DefaultURL, "`URL` of the NATS server")
	seed := flag.String("seed", "", "`file` with the seed of the NATS user, such as reader.nk")
	ca := flag.String("ca", "", "`file` with the CA of the server")
	stream := flag.String("stream", "HISTORY", "`name` of the stream")
	dir := flag.String("dir", ".", "`folder` of the files")
	every := flag.Duration("every", time.Minute, "`interval` between two passes")
	check := flag.Bool("check", false, "only report what is missing in the files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *check {
		err = checkFolder(*dir)
	} else {
		err = follow(ctx, *address, *seed, *ca, *stream, *dir, *every)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called.
	}
}

// follow copies what is new at each interval, until ctx is done.
func follow(ctx context.Context, address, seed, ca, stream, dir string, every time.Duration) error {
	options, err := optionsOf(seed, ca)
	if err != nil {
		return err
	}
	connection, err := nats.Connect(address, append(options, nats.MaxReconnects(-1))...)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	defer connection.Close()
	for {
		err := pass(ctx, connection, stream, dir)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errSetBack):
			return err
		case err != nil:
			fmt.Fprintln(os.Stderr, err) // The next pass begins where this one ended.
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// optionsOf returns how to connect as Keyturn's reader, which may receive answers only below this prefix.
func optionsOf(seed, ca string) ([]nats.Option, error) {
	options := []nats.Option{nats.Name("evidence"), nats.CustomInboxPrefix("_INBOX_actuator.evidence")}
	if ca != "" {
		options = append(options, nats.RootCAs(ca))
	}
	if seed == "" {
		return options, nil
	}
	user, err := nats.NkeyOptionFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", seed, err)
	}
	return append(options, user), nil
}

// errSetBack says that events are missing at the end of the stream, after which sequences are used for a second time.
var errSetBack = errors.New("the stream was set back: keep the files, and begin another folder")

// pass copies what the stream has and the files have not.
func pass(ctx context.Context, connection *nats.Conn, name, dir string) (err error) {
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the stream %s: %w", name, err)
	}
	info := stream.CachedInfo()
	files, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	next := uint64(1)
	if files.last.Created.Equal(info.Created) {
		next = files.last.Sequence + 1
	}
	switch {
	case next > info.State.LastSeq+1:
		return fmt.Errorf("%s ends at %d, and the files at %d: %w", name, info.State.LastSeq, files.last.Sequence, errSetBack)
	case next > info.State.LastSeq:
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("reading the stream %s: %w", name, err)
	}
	return copyTo(ctx, files, consumer, record{Stream: name, Created: info.Created}, info.State.LastSeq)
}

// copyTo copies the messages of a consumer up to a sequence.
func copyTo(ctx context.Context, files *folder, consumer jetstream.Consumer, of record, last uint64) error {
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(quiet))
		switch {
		case errors.Is(err, nats.ErrTimeout):
			return nil // The last ones are gone, or a request is lost: the next pass asks again.
		case err != nil:
			return fmt.Errorf("reading the stream %s: %w", of.Stream, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		one := of
		one.Sequence, one.Stored, one.Subject, one.Headers = meta.Sequence.Stream, meta.Timestamp.UTC(), msg.Subject(), msg.Headers()
		if err := files.write(one, msg.Data()); err != nil {
			return err
		}
		if meta.NumPending == 0 || meta.Sequence.Stream >= last {
			return nil
		}
	}
}
