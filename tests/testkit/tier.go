package testkit

import (
	"os"
	"testing"
)

// nightlyVariable is the environment variable that make test-nightly sets.
const nightlyVariable = "KEYTURN_TEST_NIGHTLY"

// Slow skips a test in make test, which runs with -short: it takes long, and what it holds is held there by another one, too.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("too slow for -short: make test-all runs it")
	}
}

// Nightly skips a test everywhere but in make test-nightly: it needs a peer that changes here rarely affect, or it takes long.
func Nightly(t testing.TB) {
	t.Helper()
	if !IsNightly() {
		t.Skip("make test-nightly runs it")
	}
}

// IsNightly reports whether make test-nightly runs the test.
func IsNightly() bool { return os.Getenv(nightlyVariable) != "" }
