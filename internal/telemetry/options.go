package telemetry

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Log levels and formats that Options takes.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"json", "text"}
)

// Options is what an operator can choose by flag. Exporters of traces and metrics are chosen by the standard OTEL_*
// environment variables instead.
type Options struct {
	// LogLevel is the least severe level that is logged: debug, info, warn or error. Default info.
	LogLevel string
	// LogFormat is json or text. Default json.
	LogFormat string
	// MetricsAddr is the host:port that serves /metrics. Default ":8080"; empty means off, port 0 any free one.
	MetricsAddr string
	// HealthAddr is the host:port that serves /livez and /readyz. Default ":9440"; empty means off, port 0 any free one.
	HealthAddr string
}

// DefaultOptions returns the options that hold where nothing else is said.
func DefaultOptions() Options {
	return Options{LogLevel: "info", LogFormat: "json", MetricsAddr: ":8080", HealthAddr: ":9440"}
}

// AddFlags adds a flag for each field, with the field's present value as the default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.LogLevel, "log-level", o.LogLevel, "least severe `level` that is logged: "+oneOf(logLevels))
	flags.StringVar(&o.LogFormat, "log-format", o.LogFormat, "`format` of the log: "+oneOf(logFormats))
	flags.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, "`address` that serves /metrics; empty turns it off")
	flags.StringVar(&o.HealthAddr, "health-addr", o.HealthAddr,
		"`address` that serves /livez and /readyz; empty turns it off")
}

// Validate reports every field that cannot be used, one line each: the flag, its value and what is allowed.
func (o *Options) Validate() error {
	var errs []error
	if !slices.Contains(logLevels, o.LogLevel) {
		errs = append(errs, fmt.Errorf("--log-level: %q is not %s", o.LogLevel, oneOf(logLevels)))
	}
	if !slices.Contains(logFormats, o.LogFormat) {
		errs = append(errs, fmt.Errorf("--log-format: %q is not %s", o.LogFormat, oneOf(logFormats)))
	}
	if !validAddr(o.MetricsAddr) {
		errs = append(errs, fmt.Errorf("--metrics-addr: %q is not host:port, :port or empty", o.MetricsAddr))
	}
	if !validAddr(o.HealthAddr) {
		errs = append(errs, fmt.Errorf("--health-addr: %q is not host:port, :port or empty", o.HealthAddr))
	}
	return errors.Join(errs...)
}

// validAddr says whether addr is off or can be listened on, as far as its form goes.
func validAddr(addr string) bool {
	if addr == "" {
		return true
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// oneOf writes a list of alternatives as prose: "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
