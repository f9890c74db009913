package testkit

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// HandleNoErrors keeps client-go from handling errors, for a test in a bubble in which a list or a watch fails. client-go keeps two errors a
// millisecond apart: if the last one was outside of the bubble, whose clock begins in 2000, it would sleep until the year of that.
func HandleNoErrors(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil                            //nolint:reassign // It is meant to be set.
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers }) //nolint:reassign // See above.
}
