// Package flagpages writes the references of the programs' flags, docs/reference/flags-*.md.
package flagpages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Check compares docs/reference/flags-<page>.md with the flags of a command and its subcommands. The title of the page and about come before the
// tables.
func Check(t testing.TB, page, title, about string, cmd *cobra.Command) {
	t.Helper()
	content := "# " + title + "\n\nThis page is made from the code by `make generate`.\n\n" + about + reference("Commands", cmd)
	testkit.Golden(t, "../../docs/reference/flags-"+page+".md", []byte(content))
}

// reference returns the flags of a command and its subcommands as Markdown: a second-level section with the title, and in it a third-level
// section for each command, with a table of flag, environment variable, default and meaning. A flag that is described already is only named.
// It leaves out hidden and deprecated flags and commands, help and completion.
//
// The text depends only on the command. A flag whose default depends on the machine, such as a home directory, describes it in its DefValue.
func reference(title string, cmd *cobra.Command) string {
	r := &writer{described: map[string]bool{}}
	fmt.Fprintf(&r.doc, "## %s\n", title)
	if hasVariables(cmd) {
		fmt.Fprintf(&r.doc, "\n%s\n", commands.EnvironmentUsage)
	}
	r.command(cmd)
	return r.doc.String()
}

// writer writes a page.
type writer struct {
	doc strings.Builder
	// described has the flags that the page describes already, with all that it says of them.
	described map[string]bool
}

// command writes the section of a command, then those of its subcommands by name.
func (r *writer) command(cmd *cobra.Command) {
	fmt.Fprintf(&r.doc, "\n### %s\n", cmd.CommandPath())
	if cmd.Short != "" {
		fmt.Fprintf(&r.doc, "\n%s\n", cmd.Short)
	}
	if hasVariables(cmd) && cmd.HasParent() && !hasVariables(cmd.Parent()) {
		fmt.Fprintf(&r.doc, "\n%s\n", commands.EnvironmentUsage)
	}
	cmd.InheritedFlags() // adds those of the parents
	r.flags(cmd.Flags(), hasVariables(cmd))
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			r.command(sub)
		}
	}
}

// hasVariables reports whether the flags of a command are set from the environment, too, which programs do before they run.
func hasVariables(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.PersistentPreRunE != nil {
			return true
		}
	}
	return false
}

// flags writes the table of flags, and names those that are described already.
func (r *writer) flags(flags *pflag.FlagSet, variables bool) {
	header := "\n| Flag | Default | Meaning |\n| --- | --- | --- |\n"
	if variables {
		header = "\n| Flag | Environment variable | Default | Meaning |\n| --- | --- | --- | --- |\n"
	}
	var known []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if !isDocumented(flag) {
			return
		}
		value, meaning := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if value != "" {
			name += " " + value
		}
		byDefault := flag.DefValue
		if byDefault == "[]" {
			byDefault = "" // an empty list
		}
		row := []string{code(name), code(byDefault), cell(meaning)}
		if variables {
			row = slices.Insert(row, 1, code(commands.EnvironmentVariable(flag.Name)))
		}
		line := "| " + strings.Join(row, " | ") + " |\n"
		if r.described[line] {
			known = append(known, code("--"+flag.Name))
			return
		}
		r.described[line] = true
		r.doc.WriteString(header + line)
		header = ""
	})
	if len(known) > 0 {
		fmt.Fprintf(&r.doc, "\nAs above: %s.\n", strings.Join(known, ", "))
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
