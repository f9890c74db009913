package commands

import (
	"errors"
	"io"
	"testing"

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
