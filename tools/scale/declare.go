package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
)

// declarePatience is how long declaring a stream may take, with retries.
const declarePatience = 2 * time.Minute

// ofCluster are the files that render.sh writes for the streams in the account of a cluster, without the name of the cluster.
var ofCluster = []string{"-changes", "-history", "-deadletters"}

// join declares what clusters need on the hub, like an operator: one cluster after the other, and FLEET once at the end.
func (h *hub) join(ctx context.Context, clusters []*cluster) error {
	for _, c := range clusters {
		if err := h.joinOne(ctx, c.name); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		h.fleet.add(c)
	}
	return h.declareFleet(ctx)
}

func (h *hub) joinOne(ctx context.Context, name string) error {
	connection, err := bus.Connect(ctx, h.options(name, "operator"))
	if err != nil {
		return err
	}
	defer connection.Close()
	operator, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	for _, suffix := range ofCluster {
		if err := h.untilDeclared(ctx, operator, name+suffix); err != nil {
			return err
		}
	}
	return h.untilDeclared(ctx, h.operator, "fleet/"+name)
}

// untilDeclared declares a stream. It retries, because a hub that is busy or elects a leader responds late.
func (h *hub) untilDeclared(ctx context.Context, operator jetstream.JetStream, file string) error {
	return untilAnswered(ctx, func(ctx context.Context) error { return h.Declare(ctx, operator, file) })
}

func untilAnswered(ctx context.Context, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, declarePatience, true, func(ctx context.Context) (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if last = ask(attempt); bus.IsSilence(last) {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) {
		return errors.Join(err, last)
	}
	return err
}

// declareFleet declares FLEET as render.sh has written it, but without the clusters that have not joined yet.
func (h *hub) declareFleet(ctx context.Context) error {
	config, err := h.StreamConfig("fleet")
	if err != nil {
		return err
	}
	config.Sources = slices.DeleteFunc(config.Sources, func(source *jetstream.StreamSource) bool { return !h.fleet.sources(source.Name) })
	return untilAnswered(ctx, func(ctx context.Context) error {
		_, err := h.operator.CreateOrUpdateStream(ctx, config)
		return err
	})
}

// reserved returns how many bytes the streams of a cluster and FLEET reserve on each server.
func (h *hub) reserved(name string) (cluster, fleet int64, err error) {
	files := []string{"fleet/" + name, "fleet"}
	for _, suffix := range ofCluster {
		files = append(files, name+suffix)
	}
	for _, file := range files {
		config, err := h.StreamConfig(file)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case file == "fleet":
			fleet = config.MaxBytes
		case config.MaxBytes > 0:
			cluster += config.MaxBytes
		}
	}
	return cluster, fleet, nil
}
