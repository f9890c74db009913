package telemetry

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// EnvironmentUsage is the sentence that tells a user about Environment, for a command's help.
const EnvironmentUsage = "Every flag can be set in the environment: --log-level is KEYTURN_LOG_LEVEL, and so on. " +
	"The command line wins."

// allowedValues says in words what the flags of a type take. Types that are not here take what their error says.
var allowedValues = map[string]string{
	"bool":     "true or false",
	"count":    "a whole number",
	"duration": "a duration such as 500ms, 10s or 5m",
	"float64":  "a number",
	"int":      "a whole number",
	"int32":    "a whole number",
	"int64":    "a whole number",
	"uint":     "a whole number, 0 or more",
	"uint16":   "a whole number from 0 to 65535",
	"uint32":   "a whole number, 0 or more",
	"uint64":   "a whole number, 0 or more",
}

// EnvironmentVariable returns the name of the variable that mirrors a flag: KEYTURN_LOG_LEVEL for log-level. It is
// empty for help and version, which ask for something rather than set it.
func EnvironmentVariable(flag string) string {
	if flag == "help" || flag == "version" {
		return ""
	}
	return "KEYTURN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Environment gives every flag that the command line did not set the value of its environment variable, where there is
// one. Call it after parsing, with the flags of the command that runs: cmd.Flags(). A variable that is set to nothing
// is the empty value, as --flag= is. Its error has one line for each variable that cannot be used: the name, the value
// and what is allowed.
//
// Kubernetes itself sets KEYTURN_PORT and KEYTURN_SERVICE_HOST where a Service is called keyturn (and
// KEYTURN_NATS_PORT for keyturn-nats): no flag may be called so, and pods set enableServiceLinks to false.
func Environment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := EnvironmentVariable(flag.Name)
		if flag.Changed || name == "" {
			return
		}
		value, ok := os.LookupEnv(name)
		if !ok {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is not %s", name, value, allowed(flag, err)))
		}
	})
	return errors.Join(errs...)
}

// allowed says what a flag takes after it has refused a value.
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
