package testkit

import (
	"os"
	"testing"
)

// StoreDir returns a folder for the streams of a NATS server that the test stops. It is removed like that of t.TempDir, but again if it was not
// empty: a server does not wait, or not for long, until everything is written, and on a busy disk it may write a file while its folder is
// being removed.
func StoreDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		for range 100 {
			if os.RemoveAll(dir) == nil {
				return // Otherwise t.TempDir reports why in the end.
			}
		}
	})
	return dir
}
