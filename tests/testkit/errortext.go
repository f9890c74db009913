package testkit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// WantError compares the text of an error. An empty text means that there must be no error.
func WantError(t testing.TB, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
