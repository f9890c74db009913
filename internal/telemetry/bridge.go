package telemetry

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"
)

// Bridge sends the logs of libraries to logger: client-go's klog, and OpenTelemetry's internal log and errors, each with its component.
// These are globals of the process, and klog's must not change while it is in use: Bridge must be called once, before anything else.
//
// The verbosity of klog stays 0: from 8 on it logs the bodies of requests, and with them Secrets.
func Bridge(logger *slog.Logger) {
	klog.SetSlogLogger(logger.With("component", "client-go"))

	sdk := logger.With("component", "opentelemetry")
	otel.SetLogger(logr.FromSlogHandler(sdk.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		// The SDK calls this from its own goroutines, without a context.
		sdk.WarnContext(context.Background(), "telemetry error", "err", err)
	}))
}
