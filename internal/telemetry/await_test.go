package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAwaitAsksUntilEveryHostIsReady(t *testing.T) {
	var asked atomic.Int32
	late, always := &Probes{}, &Probes{}
	late.AddReadiness("nats", func() error {
		if asked.Add(1) < 3 {
			return errors.New("not connected")
		}
		return nil
	})
	if err := Await(t.Context(), time.Millisecond, serve(t, late.Handler()), serve(t, always.Handler())); err != nil || asked.Load() < 3 {
		t.Errorf("got %v after %d requests, want at least 3", err, asked.Load())
	}
}

func TestAwaitSaysWhoIsNotReadyAndWhy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int32
	never, ok := &Probes{}, &Probes{}
	never.AddReadiness("sync", func() error {
		if asked.Add(1) > 2 {
			cancel() // Whether or not the third response is cut off, the text is the same.
		}
		return errors.New("no first list")
	})
	failing := serve(t, never.Handler())
	err := Await(ctx, time.Millisecond, failing, serve(t, ok.Handler()))
	if want := failing + ": " + failing + " is not ready: [-]sync: no first list"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// serve returns the address of a server with the given handler.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
