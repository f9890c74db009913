package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/backoff"
)

// acceptAgain is the delay after a connection that could not be accepted.
const acceptAgain = 100 * time.Millisecond

// socketReceiver accepts the lines that the socket audit device of a store sends. It sends no answers.
type socketReceiver struct {
	intake  *intake
	address socketAddress
	peers   []netip.Prefix
	log     *slog.Logger
}

// listen opens the listener. It removes a unix socket that an earlier process left.
func (r *socketReceiver) listen(ctx context.Context, open listenFunc) (net.Listener, error) {
	if r.address.network == "unix" {
		if info, err := os.Lstat(r.address.address); err == nil && info.Mode()&os.ModeSocket != 0 {
			os.Remove(r.address.address)
		}
	}
	listener, err := open(ctx, r.address.network, r.address.address)
	if err != nil {
		return nil, fmt.Errorf("listening for lines of store %s: %w", r.intake.store, err)
	}
	return listener, nil
}

// serve accepts connections until ctx is done.
func (r *socketReceiver) serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var group sync.WaitGroup
	defer group.Wait()
	open := newConnections()
	for {
		connection, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				connection.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("receiving lines of store %s: %w", r.intake.store, err)
		case err != nil:
			r.log.WarnContext(ctx, "audit connection not accepted", "err", err)
			backoff.Sleep(ctx, acceptAgain)
			continue
		case !allowed(connection.RemoteAddr(), r.peers):
			r.intake.refuse(ctx)
			connection.Close()
			continue
		}
		added, closed := open.add(connection)
		if closed {
			r.intake.refuse(ctx)
		}
		group.Go(func() {
			defer open.remove(added)
			r.receive(ctx, added)
		})
	}
}

// receive accepts the lines of one connection until it ends or ctx is done.
func (r *socketReceiver) receive(ctx context.Context, connection net.Conn) {
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	defer func() {
		// Whatever a peer sends must not end more than its own connection.
		if problem := recover(); problem != nil {
			r.intake.miss(ctx, malformed)
			r.log.ErrorContext(ctx, "audit line cannot be handled")
		}
	}()
	rest, _ := readLines(connection, maxLine, func(line []byte) { r.intake.take(ctx, line, false) }, func(head []byte) { r.intake.skip(ctx, head) })
	if len(rest) > 0 && ctx.Err() == nil {
		r.intake.miss(ctx, dropped)
	}
}
