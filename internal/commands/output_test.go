package commands

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/actuate"
)

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
