package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// timeout bounds how long a command waits for a connection to NATS, and for a response.
const timeout = 10 * time.Second

// Streams selects the streams to read.
type Streams struct {
	// Connect is how to reach NATS.
	Connect events.ConnectOptions
	// Cluster is the cluster whose streams to read. Required.
	Cluster string
	// Stream is a stream with the events of many clusters, to be read instead. Empty means the streams of Cluster.
	Stream string
	// Further are options of the connection that take precedence over Connect.
	Further []nats.Option
}

// OpenReader connects to the streams to read. The returned function disconnects.
func (s *Streams) OpenReader(ctx context.Context) (*events.Reader, func(), error) {
	if s.Stream == "" {
		bus, disconnect, err := s.OpenBus(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &bus.Reader, disconnect, nil
	}
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*events.Reader, error) {
		return events.OpenFleet(ctx, connection, s.Stream)
	})
}

// OpenBus connects to the streams of the cluster. The returned function disconnects.
func (s *Streams) OpenBus(ctx context.Context) (*events.Bus, func(), error) {
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*events.Bus, error) {
		return events.Open(ctx, connection, s.Cluster, nil)
	})
}

// open connects, and opens something over the connection.
func open[T any](ctx context.Context, s *Streams, over func(context.Context, *nats.Conn) (*T, error)) (*T, func(), error) {
	if err := events.ValidateCluster(s.Cluster); err != nil {
		return nil, nil, fmt.Errorf("--cluster: %w", err)
	}
	options := s.Connect
	options.Cluster, options.Role, options.Name = s.Cluster, "actuator", "keyturn-cli"
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := events.Connect(bounded, options, s.Further...)
	if err != nil {
		return nil, nil, err
	}
	opened, err := over(bounded, connection)
	if err != nil {
		connection.Close()
		return nil, nil, err
	}
	return opened, connection.Close, nil
}
