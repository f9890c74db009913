package plugin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
)

// terminal is a command's access to its terminal.
type terminal struct {
	// screen is the output itself, for control sequences. Never write text from a cluster there.
	screen io.Writer
	// errOut is for messages besides the output.
	errOut io.Writer
	// answers is the input for answers to questions on errOut. It is nil if no person is there.
	answers io.Reader
}

// agrees asks a question, and reports whether the answer is yes. Without a person, it is no.
func (t *terminal) agrees(ctx context.Context, question string) bool {
	if t.answers == nil {
		return false
	}
	fmt.Fprintf(t.errOut, "%s [y/N] ", question)
	lines := make(chan string, 1)
	go func() { // A read from a terminal cannot be interrupted, and ends with the process.
		line, _ := bufio.NewReader(t.answers).ReadString('\n')
		lines <- line
	}()
	select {
	case line := <-lines:
		return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line)))
	case <-ctx.Done():
		return false
	}
}

// isTerminal reports whether an input or output is a terminal.
func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// guard makes all commands write through printers, so that text from a cluster or a server cannot control the terminal. It runs before each command.
func (p *Plugin) guard(cmd *cobra.Command, _ []string) {
	root := cmd.Root()
	p.terminal = terminal{screen: root.OutOrStdout(), errOut: commands.TextPrinter(root.ErrOrStderr())}
	if in := root.InOrStdin(); isTerminal(in) && isTerminal(root.ErrOrStderr()) {
		p.terminal.answers = in
	}
	root.SetErr(p.terminal.errOut)
	if output := cmd.Flag("output"); output != nil && slices.Contains([]string{string(inspect.JSON), string(inspect.YAML)}, output.Value.String()) {
		root.SetOut(commands.DataPrinter(p.terminal.screen))
	} else {
		root.SetOut(commands.TextPrinter(p.terminal.screen))
	}
}
