package testkit

import (
	"os"
	"testing"
	"time"
)

// StoreDir returns a folder for the streams of a NATS server that the test stops. It is removed like that of t.TempDir, but again if it was not
// empty: a server does not wait, or not for long, until everything is written, and on a busy disk it may write a file while its folder is
// being removed.
func StoreDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		// If it cannot be removed, t.TempDir reports why in the end.
		for deadline := time.Now().Add(Patience); os.RemoveAll(dir) != nil && time.Now().Before(deadline); {
			<-time.After(10 * time.Millisecond)
		}
	})
	return dir
}
