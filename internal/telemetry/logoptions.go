package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The valid levels and formats of LogOptions.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"json", "text"}
)

// LogOptions select what is logged, and how.
type LogOptions struct {
	// Level is the least severe level that is logged: debug, info, warn or error. Default info.
	Level string
	// Format is json or text. Default json.
	Format string
}

// DefaultLogOptions returns the defaults.
func DefaultLogOptions() LogOptions { return LogOptions{Level: "info", Format: "json"} }

// AddFlags adds a flag for each field, with the field's current value as the default.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Level, "log-level", o.Level, "least severe `level` to log: "+oneOf(logLevels))
	flags.StringVar(&o.Format, "log-format", o.Format, "log `format`: "+oneOf(logFormats))
}

// Validate returns an error with a line for each invalid field: the flag, its value and what is allowed.
func (o *LogOptions) Validate() error {
	var errs []error
	if !slices.Contains(logLevels, o.Level) {
		errs = append(errs, fmt.Errorf("--log-level: %q, want %s", o.Level, oneOf(logLevels)))
	}
	if !slices.Contains(logFormats, o.Format) {
		errs = append(errs, fmt.Errorf("--log-format: %q, want %s", o.Format, oneOf(logFormats)))
	}
	return errors.Join(errs...)
}

// oneOf returns a list of alternatives as prose: "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
