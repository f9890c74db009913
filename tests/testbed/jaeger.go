package testbed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// JaegerOptions configure a Jaeger. The zero value uses a temporary folder.
type JaegerOptions struct {
	// Dir holds the log. It is created if it does not exist. Empty means a temporary folder that Stop removes.
	Dir string
	// Log receives the progress of building. Nil means none.
	Log io.Writer
}

// Jaeger is a running Jaeger, which keeps traces in memory. Its methods are safe for concurrent use.
type Jaeger struct {
	process   *process.Process
	transport *http.Transport
	client    *http.Client
	dir       string
	remove    bool

	query, otlpHTTP string
}

// StartJaeger starts a Jaeger on loopback and waits until it responds, which takes about a second. If necessary, Jaeger is
// built first, which the context also bounds. It outlives the context: the caller ends it with [Jaeger.Stop]. An error has
// the end of its log.
func StartJaeger(ctx context.Context, opts JaegerOptions) (*Jaeger, error) {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	binary, err := build.Binary(ctx, opts.Log, build.JaegerServer)
	if err != nil {
		return nil, err
	}
	dir, err := process.MakeDir(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("start Jaeger: %w", err)
	}
	transport := &http.Transport{}
	j := &Jaeger{transport: transport, client: &http.Client{Transport: transport}, dir: dir, remove: opts.Dir == ""}
	if err := j.serve(ctx, binary); err != nil {
		j.Stop()
		return nil, fmt.Errorf("start Jaeger: %w", err)
	}
	return j, nil
}

// serve starts the process. Every port that it listens on is set, even unused ones, because a second Jaeger on this machine
// could not use the default ports.
func (j *Jaeger) serve(ctx context.Context, binary string) error {
	flags := []string{
		"query.http-server.host-port", "collector.otlp.http.host-port", "collector.otlp.grpc.host-port", "admin.http.host-port",
		"query.grpc-server.host-port", "collector.http-server.host-port", "collector.grpc-server.host-port",
	}
	ports, err := process.FreePorts(len(flags))
	if err != nil {
		return err
	}
	args := []string{"--collector.otlp.enabled"}
	for i, flag := range flags {
		args = append(args, "--"+flag+"="+process.Address(ports[i]))
	}
	j.query, j.otlpHTTP = "http://"+process.Address(ports[0]), "http://"+process.Address(ports[1])
	admin := "http://" + process.Address(ports[3])
	j.process, err = process.Start(process.Options{
		Name: build.JaegerServer, Path: binary, Args: args, LogFile: filepath.Join(j.dir, "jaeger.log"),
		// Depending on the environment, it would send its own traces.
		Env: []string{"SPAN_STORAGE_TYPE=memory", "OTEL_TRACES_SAMPLER=always_off", "HOME=" + j.dir},
	})
	if err != nil {
		return err
	}
	return j.process.WaitFor(ctx, func(ctx context.Context) error { return j.get(ctx, admin, nil) })
}

// Stop ends Jaeger and waits for it. Its traces are lost. Calling it again does nothing.
func (j *Jaeger) Stop() {
	if j.process != nil {
		// How it ends does not matter: its data is removed.
		_ = j.process.Stop(process.StopGrace)
	}
	j.transport.CloseIdleConnections()
	if j.remove {
		_ = os.RemoveAll(j.dir)
	}
}

// URL returns the base URL of the API, without a trailing slash. The module has no assets of the user interface: a browser
// shows a page that says so.
func (j *Jaeger) URL() string { return j.query }

// OTLPHTTP returns the endpoint for OTLP over HTTP, in the form of OTEL_EXPORTER_OTLP_ENDPOINT.
func (j *Jaeger) OTLPHTTP() string { return j.otlpHTTP }
