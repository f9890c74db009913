package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestNothingIsLostAndNothingRollsTwiceWhateverIsDown has one part of the chain after the other fail while a secret is
// written. It is not parallel: it stops the operator that the tests share.
func TestNothingIsLostAndNothingRollsTwiceWhateverIsDown(t *testing.T) {
	n := startOutsideNATS(t)
	s := newStoreRig(t, byHTTP, programs.Options{NATSURL: n.URL()})
	s.put("shop/db", "value-0")
	s.externalSecret("db", "shop/db")
	s.deploy(s.reading("web", "db", 0, nil))
	s.start()
	faults := []struct {
		name string
		// during writes the secret while something is down, and what is down is up again when it returns.
		during func(write func())
	}{
		{"nothing", func(write func()) { write() }},
		{"the watcher is down", func(write func()) {
			s.stop(s.watcher)
			write()
			s.startWatcher()
		}},
		{"the watcher is killed right after the write", func(write func()) {
			write()
			s.watcher.Kill()
			s.startWatcher()
		}},
		{"the actuator is down", func(write func()) {
			s.stop(s.actuator)
			write()
			s.startActuator()
		}},
		{"the actuator is killed right after the write", func(write func()) {
			write()
			s.actuator.Kill()
			s.startActuator()
		}},
		{"NATS is down", func(write func()) {
			n.Stop()
			write()
			n.Start()
		}},
		{"the operator is down", func(write func()) {
			operator.kill()
			write()
			startOperator(t)
		}},
		{"the store is killed right after the write", func(write func()) {
			write()
			s.store.Kill()
			s.restartStore()
		}},
		{"everything of ours is down, and two are written", func(write func()) {
			s.stop(s.watcher)
			s.stop(s.actuator)
			n.Stop()
			s.put("shop/db", "never read")
			write()
			n.Start()
			s.startActuator()
			s.startWatcher()
		}},
	}
	for i, fault := range faults {
		value, began := fmt.Sprintf("value-%d", i+1), time.Now()
		var writing time.Duration
		fault.during(func() {
			start := time.Now()
			s.put("shop/db", value)
			writing = time.Since(start)
		})
		s.awaitContent("db", value)
		s.awaitGeneration("web", int64(i+2))
		s.awaitEndOfLastRoll("web")
		if t.Failed() {
			t.Fatalf("with: %s", fault.name)
		}
		t.Logf("%s: the write took %v, all of it %v", fault.name, writing.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
	s.quiet()
	if got, want := s.generations()["web"], int64(len(faults)+1); got != want {
		t.Errorf("generation of web when all is quiet: got %d, want %d", got, want)
	}
	if list := s.storeEvents(); len(list) > len(faults)+1 {
		t.Errorf("events: got %d, want at most one for each of %d writes:\n%s", len(list), len(faults)+1, strings.Join(list, "\n"))
	}
}

// restartStore starts the store again after a crash.
func (s *storeRig) restartStore() {
	s.Helper()
	testkit.Must(s, s.store.Start(s.Context()))
}
