// Package commands contains the common parts of all binaries: the exit code (Main), the version, the environment variables for the programs' flags,
// and writers for untrusted text.
package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// EnvironmentUsage explains Environment in a command's help.
const EnvironmentUsage = "Every flag has an environment variable: --log-level is KEYTURN_LOG_LEVEL, and so on. " +
	"Flags on the command line take precedence."

// allowedValues describes the values of a flag, by type. For other types, the error of the flag describes them.
var allowedValues = map[string]string{"bool": "true or false", "duration": "a duration such as 500ms, 10s or 5m", "int": "a whole number"}

// EnvironmentVariable returns the name of a flag's variable: KEYTURN_LOG_LEVEL for log-level. It is "" for help and version, which are not settings.
func EnvironmentVariable(flag string) string {
	if flag == "help" || flag == "version" {
		return ""
	}
	return "KEYTURN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Environment sets every flag that the command line did not set from its environment variable, if there is one. Lookup returns the value of a
// variable and whether it is set, like os.LookupEnv. Environment must be called after parsing, with the flags of the command that runs: cmd.Flags().
// A variable that is set but empty means the empty value, like --flag=. The error has a line for each invalid variable: its name, its value and what
// is allowed.
//
// Kubernetes itself sets KEYTURN_PORT and KEYTURN_SERVICE_HOST if a Service is called keyturn (and KEYTURN_NATS_PORT for keyturn-nats). So no flag
// may have such a name, and pods set enableServiceLinks to false.
func Environment(flags *pflag.FlagSet, lookup func(name string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := EnvironmentVariable(flag.Name)
		if flag.Changed || name == "" {
			return
		}
		value, ok := lookup(name)
		if !ok {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %q, want %s", name, value, allowed(flag, err)))
		}
	})
	return errors.Join(errs...)
}

// allowed describes the valid values of a flag that has refused one.
func allowed(flag *pflag.Flag, refusal error) string {
	if words, ok := allowedValues[flag.Value.Type()]; ok {
		return words
	}
	cause := refusal
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(refusal, &invalid) {
		cause = invalid.Unwrap()
	}
	return "a " + flag.Value.Type() + " (" + strings.ReplaceAll(cause.Error(), "\n", "; ") + ")"
}
