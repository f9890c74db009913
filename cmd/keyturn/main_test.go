package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/plugin"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/flagpages"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestArgumentsAreCompletedUnderTheNameThatKubectlAsksFor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		words []string
		want  []string
	}{
		{"the binary", []string{"/bin/keyturn", "history", "-n", "shop"}, []string{"history", "-n", "shop"}},
		{"the plugin", []string{"/bin/kubectl-keyturn", "history", "-n", "shop"}, []string{"history", "-n", "shop"}},
		{"its completion", []string{"/bin/kubectl_complete-keyturn", "his"}, []string{"__complete", "his"}},
		{"its completion on Windows", []string{"kubectl_complete-keyturn.exe", "his"}, []string{"__complete", "his"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "arguments", tt.want, arguments(tt.words))
		})
	}
}

func TestTheHelpNamesTheCommandAsItWasCalled(t *testing.T) {
	for _, tt := range []struct{ name, called, want string }{
		{"the binary in the image", "/usr/local/bin/keyturn", "  keyturn [command]"},
		{"the plugin", "/home/ada/bin/kubectl-keyturn", "  kubectl keyturn [command]"},
		{"the plugin on Windows", "kubectl-keyturn.exe", "  kubectl keyturn [command]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newCommand(plugin.New("test"), tt.called)
			cmd.SetOut(&out)
			cmd.SetArgs([]string{})
			if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, &out)
			}
		})
	}
}

// TestNoVariableSetsAFlagOfACommandForPeople tries the variables that would make a command do more than it was asked, or to something else.
func TestNoVariableSetsAFlagOfACommandForPeople(t *testing.T) {
	people := 0
	for _, cmd := range newCommand(plugin.New("test"), "keyturn").Commands() {
		if cmd.GroupID != forPeople {
			continue
		}
		people++
		for c := cmd; c != nil; c = c.Parent() {
			if c.PersistentPreRunE != nil {
				t.Errorf("%s: flags are set from the environment", cmd.CommandPath())
			}
		}
	}
	if people < 13 {
		t.Errorf("got %d commands for people, want all", people)
	}
	t.Setenv("KUBECONFIG", "/nowhere")
	t.Setenv("KEYTURN_ALL", "true")
	cmd := newCommand(plugin.New("test"), "keyturn")
	cmd.SetArgs([]string{"release"})
	cmd.SetOut(new(bytes.Buffer))
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("release without an argument: got no error")
	}
	release, _, err := cmd.Find([]string{"release"})
	if err != nil || release.Flag("all").Changed {
		t.Errorf("KEYTURN_ALL has set --all (%v)", err)
	}
}

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	const about = "The commands for people take their settings from the installation, and nothing from environment variables. `run`, `nats` and `project` are\n" +
		"programs of Keyturn. The names and defaults of `reloader` are those of Stakater's Reloader 1.4, except for the flags that it does not have:\n" +
		"`--cluster`, `--fingerprint-key-file`, `--kubeconfig`, `--max-rolls-per-hour`, `--metrics-addr`, `--notify-config`, `--settle` and\n" +
		"`--state-dir`. See [one process](reloader.md#one-process).\n\n"
	flagpages.Check(t, "keyturn", "The flags of keyturn", about, newCommand(plugin.New(version), "keyturn"))
}
