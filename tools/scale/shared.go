package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
)

// sharedConfig is deploy/nats/hub/server.conf without accounts, because all clusters share the streams.
const sharedConfig = `server_name: $NATS_NAME
listen: $NATS_LISTEN
http: $NATS_MONITOR
tls: { cert_file: $NATS_TLS_CERT, key_file: $NATS_TLS_KEY }
jetstream: { store_dir: $NATS_STORE, max_file: 64GB }
cluster: {
  name: keyturn
  listen: $NATS_ROUTE_LISTEN
  routes: $NATS_ROUTES
  tls: { cert_file: $NATS_TLS_CERT, key_file: $NATS_TLS_KEY, ca_file: $NATS_TLS_CA, verify: true }
}
`

// writeShared writes the configuration of servers whose streams all clusters share.
func (h *hub) writeShared() error {
	config := filepath.Join(h.Dir, "hub", "server.conf")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		return err
	}
	return os.WriteFile(config, []byte(sharedConfig), 0o600)
}

// declareShared declares the streams that all clusters share.
func (h *hub) declareShared(ctx context.Context) error {
	js, err := h.jetstream(ctx, "shared", "operator")
	if err != nil {
		return err
	}
	// A request that is sent before the servers have elected a leader is never answered, so a single attempt would use up all of
	// the time.
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = bus.Declare(attempt, js, replicas)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
