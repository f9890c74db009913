package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

// later is a command that somebody adds later, without a thought of terminals. It shows what it has of a cluster.
func later(shown string) *cobra.Command {
	format := inspect.Table
	cmd := &cobra.Command{
		Use: "later", RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.ErrOrStderr(), "Left out: %s\n", shown)
			done, err := format.Encode(cmd.OutOrStdout(), map[string]string{"leader": shown})
			if !done {
				fmt.Fprintf(cmd.OutOrStdout(), "%s leads\n", shown)
			}
			return err
		},
	}
	addOutput(cmd, &format, "")
	return cmd
}

func TestNoCommandLetsAClusterControlTheTerminal(t *testing.T) {
	const hostile = "keyturn-actuator-0\x1b[2J\x1b]52;c;cm0=\x07\r\u009b2J\x7f größer 密码 🔑 \\ \"x\""
	for _, format := range []string{"table", "wide", "json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			var out, errOut bytes.Buffer
			p := New("test")
			defer p.Close()
			root := p.Command()
			root.AddCommand(later(hostile))
			root.SetOut(&out)
			root.SetErr(&errOut)
			root.SetArgs([]string{"later", "--output", format})
			testkit.Must(t, root.ExecuteContext(t.Context()))
			for name, text := range map[string]string{"output": out.String(), "errors": errOut.String()} {
				if !strings.Contains(text, "keyturn-actuator-0") || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
					t.Errorf("%s: got %q, want the name without control characters", name, text)
				}
			}
			var data map[string]string
			decode := map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(text []byte, v any) error { return yaml.Unmarshal(text, v) }}
			if decode[format] != nil && (decode[format](out.Bytes(), &data) != nil || data["leader"] != hostile) {
				t.Errorf("got %q, want %q as it is", data, hostile)
			}
		})
	}
}

// TestEachCommandIsGuarded holds that no command has a hook that runs instead of the one that guards the terminal.
func TestEachCommandIsGuarded(t *testing.T) {
	root := New("test").Command()
	if root.PersistentPreRun == nil || root.PersistentPreRunE != nil || cobra.EnableTraverseRunHooks {
		t.Error("the root does not guard the terminal")
	}
	for _, cmd := range root.Commands() {
		if cmd.PersistentPreRun != nil || cmd.PersistentPreRunE != nil {
			t.Errorf("%s does not guard the terminal", cmd.Name())
		}
	}
}

// TestTheScreenIsClearedBesideWhatIsGuarded is about status --watch.
func TestTheScreenIsClearedBesideWhatIsGuarded(t *testing.T) {
	var out bytes.Buffer
	p := New("test")
	root := p.Command()
	root.AddCommand(&cobra.Command{Use: "later", Run: func(cmd *cobra.Command, _ []string) {
		fmt.Fprint(p.terminal.screen, clearScreen)
		fmt.Fprint(cmd.OutOrStdout(), clearScreen)
	}})
	root.SetOut(&out)
	root.SetArgs([]string{"later"})
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != clearScreen+" [H [2J" {
		t.Errorf("got %q (%v)", &out, err)
	}
}

// An installation in any namespace may be that of a tenant, who wants an administrator to believe it.
func TestAnInstallationElsewhereIsTakenOnlyIfAPersonAgrees(t *testing.T) {
	const found = "the StatefulSet keyturn-actuator in namespace tenant"
	const asks = "Found outside of namespace keyturn-system: " + found + ". Is it the installation? [y/N] "
	const refusal = "found outside of namespace keyturn-system: " + found + "; if it is the installation, give --installation=tenant"
	for _, tt := range []struct {
		name, in, given string
		nobody          bool
		answer          string
		asks, err       string
	}{
		{name: "in the usual namespace", in: "keyturn-system"},
		{name: "that is named", in: "tenant", given: "tenant"},
		{name: "without a terminal", in: "tenant", nobody: true, err: refusal},
		{name: "after yes", in: "tenant", answer: "y\n", asks: asks},
		{name: "after yes in full", in: "tenant", answer: " Yes\r\n", asks: asks},
		{name: "after no", in: "tenant", answer: "n\n", asks: asks, err: refusal},
		{name: "after nothing", in: "tenant", answer: "\n", asks: asks, err: refusal},
		{name: "after the end of the input", in: "tenant", asks: asks, err: refusal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked bytes.Buffer
			p := New("test")
			p.access.typed, p.namespace = fake.NewClientset(actuatorIn(tt.in)), tt.given
			p.terminal.errOut = &asked
			if !tt.nobody {
				p.terminal.answers = strings.NewReader(tt.answer)
			}
			err := p.find(t.Context())
			wantErrorWith(t, err, tt.err)
			if asked.String() != tt.asks || err == nil && p.installed.namespace != tt.in || err != nil && p.installed != nil {
				t.Errorf("it asks %q, want %q; the installation is %v", &asked, tt.asks, p.installed)
			}
			if err != nil {
				return
			}
			// The commands that wait look for it again and again.
			if err := p.find(t.Context()); err != nil || asked.String() != tt.asks {
				t.Errorf("it asks again: %q (%v)", &asked, err)
			}
		})
	}
}

func TestAQuestionEndsWithTheCommand(t *testing.T) {
	answers, person := io.Pipe()
	defer func() { _ = person.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if (&terminal{errOut: io.Discard, answers: answers}).agrees(ctx, "Is it?") {
		t.Error("an interrupt is taken for a yes")
	}
}

func TestOnlyATerminalIsOne(t *testing.T) {
	null, err := os.Open(os.DevNull)
	testkit.Must(t, err)
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	testkit.Must(t, err)
	defer file.Close()
	for name, stream := range map[string]any{"the null device": null, "a file": file, "a buffer": new(bytes.Buffer)} {
		if isTerminal(stream) {
			t.Errorf("%s is a terminal", name)
		}
	}
}
