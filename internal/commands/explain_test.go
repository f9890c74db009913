package commands

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestExplainRefusesAPolicyThatTheActuatorDoesNotHave(t *testing.T) {
	const reads = "it reads the workload"
	for _, tt := range []struct {
		name, value, want string
	}{
		{"one that it has", "never", reads},
		{"another word", "sometimes", `--roll-on-create: "sometimes", want one of ["auto" "always" "never"]`},
		{"none", "", `--roll-on-create: "", want one of ["auto" "always" "never"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := actuate.DefaultOptions()
			cmd := Explain(&Program{Settings: &settings, Clients: func() (workload.Clients, error) { return workload.Clients{}, errors.New(reads) }})
			cmd.SetArgs([]string{"deployment/web", "--roll-on-create=" + tt.value})
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestEachReadingCommandHasTheSameFormats(t *testing.T) {
	for _, command := range []func(*Program) *cobra.Command{Explain, History, Clusters, DeadLetters} {
		settings := actuate.DefaultOptions()
		cmd := command(&Program{Settings: &settings})
		if got := cmd.Flags().Lookup("output").Value.String(); got != "table" {
			t.Errorf("%s: the default is %q", cmd.Name(), got)
		}
		for _, format := range []string{"table", "wide", "json", "yaml"} {
			if err := cmd.ParseFlags([]string{"-o", format}); err != nil {
				t.Errorf("%s -o %s: %v", cmd.Name(), format, err)
			}
		}
		if err := cmd.ParseFlags([]string{"-o", "xml"}); err == nil || !strings.HasSuffix(err.Error(), "want table, wide, json or yaml") {
			t.Errorf("%s -o xml: got %v", cmd.Name(), err)
		}
	}
}
