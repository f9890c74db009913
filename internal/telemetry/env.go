package telemetry

import (
	"context"
	"os"
	"strings"
)

// scope is the name of this package's meter.
const scope = "github.com/keyturn/keyturn/internal/telemetry"

// disabled reports whether the environment turns OpenTelemetry off altogether.
func disabled() bool {
	return strings.EqualFold(env("OTEL_SDK_DISABLED"), "true")
}

// env returns an OpenTelemetry environment variable, for which empty means unset.
func env(name string) string {
	return strings.TrimSpace(os.Getenv(name))
}

// noShutdown shuts down a no-op provider.
func noShutdown(context.Context) error { return nil }
