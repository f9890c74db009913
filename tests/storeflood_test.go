package tests

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// floodWrites is how many secrets are written for each measurement.
const floodWrites = 100

// The file device beside the receiver is there all the time. The log says how long the writes take. That is a measurement, not a test: whatever else runs
// on the machine makes them slower. So the test runs alone.
func TestTheStoreTakesWritesAndNoneIsMissedWhileAReceiverIsFloodedHangsOrIsGone(t *testing.T) {
	testkit.Nightly(t)
	s := newStoreRig(t, bySocket, programs.Options{})
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
	stop := flood(t, s.listen, 4, strings.Repeat(lies, 100))
	writes("flooded")
	t.Logf("meanwhile the receiver took %d MB", stop()>>20)
	allFound("flooded")

	if err := s.watcher.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	writes("hung")
	if err := s.watcher.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	allFound("hung")

	if err := s.watcher.Stop(patience); err != nil {
		t.Fatal(err)
	}
	writes("gone")
	s.startWatcher()
	s.put("flood/last", "one")
	s.awaitEvent("flood/last", "rotated create 1")
	allFound("gone")
}

// flood sends a text repeatedly on several connections. The returned function stops it and returns the number of bytes sent.
func flood(t *testing.T, address string, connections int, text string) (stop func() int64) {
	t.Helper()
	var senders sync.WaitGroup
	sent := make(chan int64, connections)
	done := make(chan struct{})
	for range connections {
		connection := dial(t, address)
		senders.Go(func() {
			defer connection.Close()
			written := int64(0)
			for {
				select {
				case <-done:
					sent <- written
					return
				default:
				}
				n, err := io.WriteString(connection, text)
				written += int64(n)
				if err != nil {
					t.Error(fmt.Errorf("the flood ended: %w", err))
					sent <- written
					return
				}
			}
		})
	}
	stop = sync.OnceValue(func() int64 {
		close(done)
		senders.Wait()
		total := int64(0)
		for range connections {
			total += <-sent
		}
		return total
	})
	t.Cleanup(func() { stop() })
	return stop
}
