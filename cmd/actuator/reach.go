package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
)

// addStream adds the flag of the commands that can read the events of many clusters in one place.
func (s *settings) addStream(flags *pflag.FlagSet) {
	flags.StringVar(&s.stream, "stream", "", "`name` of a stream with the events of many clusters, such as FLEET on a hub; empty reads the streams of --cluster")
}

// openReader connects a command that reads: the streams of the cluster, or the one of --stream.
func (s *settings) openReader(ctx context.Context) (*events.Reader, func(), error) {
	if s.stream == "" {
		bus, closeBus, err := s.openBus(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &bus.Reader, closeBus, nil
	}
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*events.Reader, error) {
		return events.OpenFleet(ctx, connection, s.stream)
	})
}

// openBus connects a command that reads the streams of the cluster.
func (s *settings) openBus(ctx context.Context) (*events.Bus, func(), error) {
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*events.Bus, error) {
		return events.Open(ctx, connection, s.process.Cluster, nil)
	})
}

// open connects and opens something over the connection. The caller closes it by the function that it returns.
func open[T any](ctx context.Context, s *settings, over func(context.Context, *nats.Conn) (*T, error)) (*T, func(), error) {
	if err := events.ValidateCluster(s.process.Cluster); err != nil {
		return nil, nil, fmt.Errorf("--cluster: %w", err)
	}
	options := s.process.NATS
	options.Cluster, options.Role, options.Name = s.process.Cluster, "actuator", "keyturn-cli"
	bounded, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	connection, err := events.Connect(bounded, options)
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
