// Package flagpages writes the references of the programs' flags, docs/flags-*.md.
package flagpages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Check compares docs/flags-<page>.md with the flags of a command and its subcommands. The title of the page and about come before the tables.
func Check(t testing.TB, page, title, about string, cmd *cobra.Command) {
	t.Helper()
	content := "# " + title + "\n\nThis page is made from the code by `make generate`.\n\n" + about + reference("Commands", cmd)
	testkit.Golden(t, "../../docs/flags-"+page+".md", []byte(content))
}

// reference returns the flags of a command and its subcommands as Markdown: a second-level section with the title, and in it a third-level
// section for each command, with a table of flag, environment variable, default and meaning. It leaves out hidden and deprecated flags and
// commands, help and completion.
//
// The text depends only on the command. A flag whose default depends on the machine, such as a home directory, describes it in its DefValue.
func reference(title string, cmd *cobra.Command) string {
	var doc strings.Builder
	fmt.Fprintf(&doc, "## %s\n\n%s\n", title, commands.EnvironmentUsage)
	writeCommand(&doc, cmd)
	return doc.String()
}

// writeCommand writes the section of a command, then those of its subcommands by name.
func writeCommand(doc *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(doc, "\n### %s\n", cmd.CommandPath())
	if cmd.Short != "" {
		fmt.Fprintf(doc, "\n%s\n", cmd.Short)
	}
	writeFlags(doc, cmd.LocalFlags())
	writeInherited(doc, cmd.InheritedFlags())
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			writeCommand(doc, sub)
		}
	}
}

// writeFlags writes the table of flags, or nothing if there are none.
func writeFlags(doc *strings.Builder, flags *pflag.FlagSet) {
	header := "\n| Flag | Environment variable | Default | Meaning |\n| --- | --- | --- | --- |\n"
	flags.VisitAll(func(flag *pflag.Flag) {
		if !isDocumented(flag) {
			return
		}
		doc.WriteString(header)
		header = ""
		value, meaning := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if value != "" {
			name += " " + value
		}
		byDefault := flag.DefValue
		if byDefault == "[]" {
			byDefault = "" // an empty list
		}
		fmt.Fprintf(doc, "| %s | %s | %s | %s |\n", code(name), code(commands.EnvironmentVariable(flag.Name)), code(byDefault), cell(meaning))
	})
}

// writeInherited names the flags described at a parent command, or writes nothing if there are none.
func writeInherited(doc *strings.Builder, flags *pflag.FlagSet) {
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if isDocumented(flag) {
			names = append(names, code("--"+flag.Name))
		}
	})
	if len(names) > 0 {
		fmt.Fprintf(doc, "\nAs above: %s.\n", strings.Join(names, ", "))
	}
}

// isDocumented reports whether a flag is for users to set.
func isDocumented(flag *pflag.Flag) bool {
	return !flag.Hidden && flag.Deprecated == "" && commands.EnvironmentVariable(flag.Name) != ""
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
