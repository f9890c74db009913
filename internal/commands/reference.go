package commands

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reference writes the flags of a command and its subcommands as Markdown: a second-level section with the title, and in it a third-level
// section for each command, with a table of flag, environment variable, default and meaning. It leaves out hidden and deprecated flags and
// commands, help and completion.
//
// The text depends only on the command. A flag whose default depends on the machine, such as a home directory, describes it in its DefValue.
func Reference(w io.Writer, title string, cmd *cobra.Command) error {
	var doc bytes.Buffer
	fmt.Fprintf(&doc, "## %s\n\n%s\n", title, EnvironmentUsage)
	referCommand(&doc, cmd)
	_, err := w.Write(doc.Bytes())
	return err
}

// referCommand writes the section of a command, then those of its subcommands by name.
func referCommand(doc *bytes.Buffer, cmd *cobra.Command) {
	fmt.Fprintf(doc, "\n### %s\n", cmd.CommandPath())
	if cmd.Short != "" {
		fmt.Fprintf(doc, "\n%s\n", cmd.Short)
	}
	referFlags(doc, cmd.LocalFlags())
	referInherited(doc, cmd.InheritedFlags())
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			referCommand(doc, sub)
		}
	}
}

// referFlags writes the table of flags, or nothing if there are none.
func referFlags(doc *bytes.Buffer, flags *pflag.FlagSet) {
	header := "\n| Flag | Environment variable | Default | Meaning |\n| --- | --- | --- | --- |\n"
	flags.VisitAll(func(flag *pflag.Flag) {
		if !documented(flag) {
			return
		}
		doc.WriteString(header)
		header = ""
		value, meaning := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(doc, "| %s | %s | %s | %s |\n",
			code(name), code(EnvironmentVariable(flag.Name)), code(defaultOf(flag)), cell(meaning))
	})
}

// referInherited names the flags described at a parent command, or writes nothing if there are none.
func referInherited(doc *bytes.Buffer, flags *pflag.FlagSet) {
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if documented(flag) {
			names = append(names, code("--"+flag.Name))
		}
	})
	if len(names) > 0 {
		fmt.Fprintf(doc, "\nAs above: %s.\n", strings.Join(names, ", "))
	}
}

// documented reports whether a flag is for users to set.
func documented(flag *pflag.Flag) bool {
	return !flag.Hidden && flag.Deprecated == "" && EnvironmentVariable(flag.Name) != ""
}

// defaultOf returns the default of a flag as a user would write it; "" for an empty list.
func defaultOf(flag *pflag.Flag) string {
	if flag.DefValue == "[]" {
		return ""
	}
	return flag.DefValue
}

// code returns text as a table cell in code type.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell escapes text for a table cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
