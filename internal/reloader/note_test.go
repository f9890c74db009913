package reloader

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/program"
)

// Reloader ignores an argument that is no flag, such as the value after a flag that is on or off.
func TestArgumentsThatReloaderIgnoresAreNoted(t *testing.T) {
	r, err := translate(t, Environment{}, "--auto-reload-all", "true", "--reload-on-create", "true", "x")
	if err != nil {
		t.Fatal(err)
	}
	const effect = "none, as in Reloader; a flag that is on or off takes its value as --flag=value"
	want := []program.Note{{Setting: `argument "true"`, Text: effect}, {Setting: `argument "x"`, Text: effect}}
	if diff := cmp.Diff(want, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if !r.Actuator.Actuate.RollAll || r.Actuator.Actuate.RollOnCreate != "always" {
		t.Error("the flags before and after them do not count")
	}
}
