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
	for _, tt := range []struct {
		name    string
		command func(*Program) *cobra.Command
		want    string
	}{
		{"explain", Explain, "want table, wide, json or yaml"},
		{"history", History, "want table, wide, json or yaml"},
		{"clusters", Clusters, "want table, wide, json or yaml"},
		{"dead-letters", DeadLetters, "want table, wide, json or yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := actuate.DefaultOptions()
			cmd := tt.command(&Program{Settings: &settings})
			if got := cmd.Flags().Lookup("output").Value.String(); got != "table" {
				t.Errorf("the default is %q", got)
			}
			for _, format := range []string{"table", "wide", "json", "yaml"} {
				if err := cmd.ParseFlags([]string{"-o", format}); err != nil {
					t.Errorf("-o %s: %v", format, err)
				}
			}
			if err := cmd.ParseFlags([]string{"-o", "xml"}); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("-o xml: got %v, want %q", err, tt.want)
			}
		})
	}
}
