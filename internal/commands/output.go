package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
)

// output is the value of the flag --output.
type output struct {
	format  *inspect.Format
	allowed []string
}

// formats are the formats of most commands.
var formats = []inspect.Format{inspect.Table, inspect.Wide, inspect.JSON, inspect.YAML}

// AddOutput adds the flag --output to a command, with the allowed formats. The first one is the default. About is appended to the help, and may
// be empty.
func AddOutput(cmd *cobra.Command, format *inspect.Format, about string, allowed ...inspect.Format) {
	value := &output{format: format}
	for _, one := range allowed {
		value.allowed = append(value.allowed, string(one))
	}
	*format = allowed[0]
	cmd.Flags().VarP(value, "output", "o", "output `format`: "+value.either()+about)
	// The only errors are that the flag does not exist, or is already registered.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(value.allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) either() string {
	last := len(o.allowed) - 1
	return strings.Join(o.allowed[:last], ", ") + " or " + o.allowed[last]
}

// String returns the format.
func (o *output) String() string {
	if o.format == nil {
		return "" // pflag calls this on a zero value
	}
	return string(*o.format)
}

// Set sets the format, which must be an allowed one.
func (o *output) Set(text string) error {
	if !slices.Contains(o.allowed, text) {
		return fmt.Errorf("want %s", o.either())
	}
	*o.format = inspect.Format(text)
	return nil
}

// Type returns the name of the type in the help.
func (o *output) Type() string { return "format" }
