package secretstore

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Run is like [Start], for a test: it stops the store when the test ends, and shows the end of the server's log if the test
// failed.
func Run(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Start(t.Context(), opts)
	testkit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the secret store's log:\n%s", s.Process().Tail())
		}
		s.Stop()
	})
	return s
}
