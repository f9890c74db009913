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

// formats are those of a command that reads.
var formats = []inspect.Format{inspect.Table, inspect.Wide, inspect.JSON, inspect.YAML}

// AddOutput adds the flag --output of a command that has some formats. The first is the default. About says more of them, if that is not empty.
func AddOutput(cmd *cobra.Command, format *inspect.Format, about string, allowed ...inspect.Format) {
	value := &output{format: format}
	for _, one := range allowed {
		value.allowed = append(value.allowed, string(one))
	}
	*format = allowed[0]
	cmd.Flags().VarP(value, "output", "o", "output `format`: "+value.either()+about)
	// Its only error is a flag that is not there, or was registered before.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(value.allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) either() string {
	last := len(o.allowed) - 1
	return strings.Join(o.allowed[:last], ", ") + " or " + o.allowed[last]
}

// String returns the format.
func (o *output) String() string {
	if o.format == nil {
		return "" // pflag asks a zero value.
	}
	return string(*o.format)
}

// Set sets the format, to one of those that the command has.
func (o *output) Set(text string) error {
	if !slices.Contains(o.allowed, text) {
		return fmt.Errorf("want %s", o.either())
	}
	*o.format = inspect.Format(text)
	return nil
}

// Type returns the name of the type in the help.
func (o *output) Type() string { return "format" }
