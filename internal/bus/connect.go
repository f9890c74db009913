package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// unreachableInterval is how often Connect logs that it is still waiting.
const unreachableInterval = 5 * time.Second

// Connect connects to NATS. It waits for a server that is unreachable, and logs so every five seconds. It returns an error if
// ctx is done or an option is invalid. Once established, the connection is re-established without limit. The further options
// take precedence over opts: pass nats.InProcessServer for an embedded server.
func Connect(ctx context.Context, opts ConnectOptions, further ...nats.Option) (*nats.Conn, error) {
	logger := orDiscard(opts.Logger)
	if err := events.ValidateCluster(opts.Cluster); err != nil {
		return nil, fmt.Errorf("cluster %w", err)
	}
	opts.URL = cmp.Or(opts.URL, nats.DefaultURL)
	shown, err := Redact(opts.URL)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[error]
	var user nkeyUser
	options, err := opts.options(context.WithoutCancel(ctx), logger, shown, &last, &user)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(opts.URL, append(options, further...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to nats at %s: %w", shown, err)
	}
	user.conn.Store(nc)
	// Listening starts before the first look at the state, so that no change is missed.
	changed := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(changed)
	tick := time.NewTicker(unreachableInterval)
	defer tick.Stop()
	for !nc.IsConnected() {
		why := nc.LastError()
		if err := last.Load(); err != nil {
			why = *err
		}
		if nc.IsClosed() {
			return nil, fmt.Errorf("connecting to nats at %s: %w", shown, errors.Join(nats.ErrConnectionClosed, why))
		}
		logger.WarnContext(ctx, "nats unreachable", "url", shown, "err", why)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			nc.Close()
			return nil, fmt.Errorf("connecting to nats at %s: %w", shown, errors.Join(ctx.Err(), why))
		}
	}
	logger.InfoContext(ctx, "nats connected", "url", shown, "server", nc.ConnectedServerName())
	return nc, nil
}

// Connected is a readiness check. It returns an error unless the connection is up. If a server was reached, the error has the reason, such as an
// untrusted certificate. A nil connection means that Connect has not returned yet.
func Connected(nc *nats.Conn) error {
	if nc == nil {
		return errors.New("nats is not connected yet")
	}
	if nc.IsConnected() {
		return nil
	}
	if why := nc.LastError(); why != nil {
		return fmt.Errorf("nats is not connected: %s: %w", nc.Status(), why)
	}
	return errors.New("nats is not connected: " + nc.Status().String())
}

// Alive is a liveness check. It returns an error when the connection is closed, after one of the few errors after which it does not re-establish
// itself, such as a violation of the protocol. Then only a restart helps. A nil connection means that Connect has not returned yet.
func Alive(nc *nats.Conn) error {
	if nc == nil || !nc.IsClosed() {
		return nil
	}
	return fmt.Errorf("the nats connection is closed: %w", cmp.Or(nc.LastError(), nats.ErrConnectionClosed))
}

// Drain finishes what is in flight on the connection and closes it. If ctx is done first, it closes the connection at once and returns an error.
func Drain(ctx context.Context, nc *nats.Conn) error {
	closed := nc.StatusChanged(nats.CLOSED)
	defer nc.RemoveStatusListener(closed)
	err := nc.Drain()
	if errors.Is(err, nats.ErrConnectionClosed) || nc.IsClosed() {
		return nil
	}
	if err == nil {
		select {
		case <-closed:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	nc.Close()
	return fmt.Errorf("draining the nats connection: %w", err)
}
