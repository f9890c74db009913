package natstest

import (
	"fmt"
	"testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Publish calls publish until it has an answer, as the programs do, and fails the test if that is an error. An event that is published again is not
// stored twice. Other requests that may be repeated, such as a purge or a reading, can take the place of publish.
func Publish(t testing.TB, publish func() error) {
	t.Helper()
	testkit.Must(t, Answered(t, publish))
}

// Answered calls request until it has an answer, and returns its error: while the machine or its disk is busy, a server can take longer than a
// request waits.
func Answered(t testing.TB, request func() error) (err error) {
	t.Helper()
	testkit.Eventually(t, "the request is answered", func() bool {
		err = request()
		return !bus.IsSilence(err)
	}, func() string { return fmt.Sprint(err) })
	return err
}
