package openbao

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// The limits of the receiver of lines.
const (
	// maxLine is how long a line may be, in bytes. A longer one is skipped. Writes of secrets have shorter ones; an answer about
	// a whole mount, such as the poller's own, has a long one, which is of no interest.
	maxLine = 4 << 20
	// readBuffer is how much is read at once.
	readBuffer = 64 << 10
	// maxConnections is how many connections a store may have. Each node of a store has one or two.
	maxConnections = 64
	// acceptAgain is the delay after a connection that could not be accepted.
	acceptAgain = 100 * time.Millisecond
)

// lines takes what the socket audit device of a store sends: lines, and nothing is answered.
type lines struct {
	store   *store
	address socketAddress
	log     *slog.Logger
}

// serve takes connections until ctx is done.
func (l *lines) serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var group sync.WaitGroup
	defer group.Wait()
	places := make(chan struct{}, maxConnections)
	for {
		connection, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				connection.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("receiving lines of store %s: %w", l.store.config.Name, err)
		case err != nil:
			l.log.WarnContext(ctx, "connection of an audit device is not accepted", "err", err)
			pause(ctx, acceptAgain)
			continue
		case !allowed(connection.RemoteAddr(), l.store.config.peers):
			l.store.refuse(ctx)
			connection.Close()
			continue
		}
		select {
		case places <- struct{}{}:
			group.Go(func() {
				defer func() { <-places }()
				l.receive(ctx, connection)
			})
		default:
			l.store.refuse(ctx)
			connection.Close()
		}
	}
}

// receive takes the lines of one connection until it ends, or ctx is done.
func (l *lines) receive(ctx context.Context, connection net.Conn) {
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	defer func() {
		// What a peer sends ends its own connection at most.
		if problem := recover(); problem != nil {
			l.store.miss(ctx, malformed)
			l.log.ErrorContext(ctx, "line of an audit device cannot be handled")
		}
	}()
	rest, _ := readLines(connection, maxLine, func(line []byte) { l.store.take(ctx, line, false) }, func(head []byte) { l.store.skip(ctx, head) })
	if len(rest) > 0 && ctx.Err() == nil {
		l.store.miss(ctx, dropped)
	}
}

// readLines calls take for each line until the reader ends, and skip with the beginning of each that is longer than the limit.
// Lines without anything are left out. It gives what stands behind the last end of a line, and why the reader has ended: an
// error or nil.
func readLines(r io.Reader, limit int, take, skip func(line []byte)) (rest []byte, err error) {
	reader := bufio.NewReaderSize(r, readBuffer)
	var line []byte // what was read of a line that is longer than the buffer
	tooLong := false
	for {
		part, err := reader.ReadSlice('\n')
		switch {
		case tooLong:
		case len(line)+len(part) > limit+1:
			tooLong, line = true, append(line, part...)[:min(len(line)+len(part), readBuffer)]
		case len(line) > 0 || err != nil:
			line = append(line, part...)
		default:
			line = part
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		whole := bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case tooLong:
			skip(whole)
			whole = nil
		case len(bytes.TrimSpace(whole)) == 0:
			whole = nil
		case err == nil:
			take(whole)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return whole, err
		}
		// A long line's memory is not kept.
		tooLong, line = false, nil
	}
}

// listen opens the listener. What an earlier process left of a unix socket is removed.
func (l *lines) listen(ctx context.Context, open func(ctx context.Context, network, address string) (net.Listener, error)) (net.Listener, error) {
	if l.address.network == "unix" {
		if info, err := os.Lstat(l.address.address); err == nil && info.Mode()&os.ModeSocket != 0 {
			os.Remove(l.address.address)
		}
	}
	listener, err := open(ctx, l.address.network, l.address.address)
	if err != nil {
		return nil, fmt.Errorf("listening for lines of store %s: %w", l.store.config.Name, err)
	}
	return listener, nil
}
