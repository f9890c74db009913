package tests

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
)

// floodWrites is how many secrets are written for each measurement.
const floodWrites = 100

// The file device beside the receiver is there all the time. The log says how long the writes take. That is a measurement, not a test: whatever else runs
// on the machine makes them slower. So the test runs alone.
func TestTheStoreTakesWritesAndNoneIsMissedWhileAReceiverIsFloodedHangsOrIsGone(t *testing.T) {
	testkit.Nightly(t)
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.startActuator()
	s.startWatcher()
	writes := func(round string) {
		t.Helper()
		start := time.Now()
		for i := range floodWrites {
			s.put("flood/"+round+"/"+strconv.Itoa(i), "one")
		}
		t.Logf("%d writes, %s: %v", floodWrites, round, time.Since(start).Round(time.Millisecond))
	}
	allFound := func(round string) {
		t.Helper()
		s.eventually("all writes of "+round+" are on the stream", func(context.Context) bool {
			return strings.Count(strings.Join(s.storeEvents(), "\n"), "/flood/"+round+"/") == floodWrites
		})
	}
	writes("alone")
	s.feed()
	writes("fed")
	allFound("fed")

	// Lines that the watcher checks, about paths that do not exist. It uses a line without the id of a request each time.
	lies := strings.ReplaceAll(lie("secret/data/ghost", "read", "null")+lie("nowhere/data/ghost", "update", "null"), `"id":"x"`, `"id":""`)
	stop := s.flood(4, []byte(strings.Repeat(lies, 100)))
	writes("flooded")
	t.Logf("meanwhile the receiver took %d MB", stop()>>20)
	allFound("flooded")

	if !secretstore.OpenBao() { // OpenBao waits for each answer, for up to its own timeout.
		if err := s.watcher.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		writes("hung")
		if err := s.watcher.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		allFound("hung")
	}

	if err := s.watcher.Stop(patience); err != nil {
		t.Fatal(err)
	}
	writes("gone")
	s.startWatcher()
	s.put("flood/last", "one")
	s.awaitEvent("flood/last", "rotated create 1")
	allFound("gone")
}

// flood posts lines repeatedly from several senders, also while the receiver has no room. The returned function stops it and returns the number of
// bytes posted.
func (s *storeRig) flood(count int, lines []byte) (stop func() int64) {
	s.Helper()
	var senders sync.WaitGroup
	var posted atomic.Int64
	done := make(chan struct{})
	for range count {
		senders.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := s.postLines(lines); err != nil && !errors.Is(err, errRefused) {
					s.Errorf("the flood ended: %v", err)
					return
				}
				posted.Add(int64(len(lines)))
			}
		})
	}
	stop = sync.OnceValue(func() int64 {
		close(done)
		senders.Wait()
		return posted.Load()
	})
	s.Cleanup(func() { stop() })
	return stop
}
