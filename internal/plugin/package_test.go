package plugin

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wantErrorWith checks that the text of an error contains a part. An empty part means that there must be no error.
func wantErrorWith(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}
