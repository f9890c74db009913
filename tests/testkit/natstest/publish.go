package natstest

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Publish calls publish until it has an answer, as the programs do: while the disk is busy, a server can take longer than a request waits. An event
// that is published again is not stored twice. Other requests that may be repeated, such as a purge, can take the place of publish.
func Publish(t testing.TB, publish func() error) {
	t.Helper()
	testkit.Eventually(t, "the request is answered", func() bool {
		err := publish()
		if err != nil && !events.IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}
