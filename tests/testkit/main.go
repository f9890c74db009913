package testkit

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
)

// leakSearch is about how long goleak takes to find goroutines, because it looks for them again and again.
const leakSearch = 400 * time.Millisecond

// Main is the TestMain of a package that runs NATS servers: it runs the tests, and fails if they leave goroutines behind. It gives those of NATS
// [Patience], where goleak.VerifyTestMain gives half a second: neither a server that is stopped nor a connection that is closed waits for all of
// its own. It counts searches instead of time, because the machine may stand still meanwhile.
func Main(m goleak.TestingM, options ...goleak.Option) {
	code := m.Run()
	for left := int(Patience / leakSearch); code == 0; left-- {
		err := goleak.Find(options...)
		if err == nil {
			break
		}
		if !onlyNATS(err.Error()) || left == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// goroutine matches the line before the stack of each goroutine in an error of goleak.
var goroutine = regexp.MustCompile(`Goroutine \d+ in state .* on top of the stack:`)

// onlyNATS reports whether each goroutine that goleak has found is one of NATS's libraries.
func onlyNATS(found string) bool {
	return !slices.ContainsFunc(goroutine.Split(found, -1)[1:], func(stack string) bool { return !strings.Contains(stack, "github.com/nats-io/") })
}
