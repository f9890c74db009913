//go:build !race

package actuate_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// outboxPatience is how long outcomes wait at most while patches are under way, and outboxSize how many do.
const (
	outboxPatience = 5 * time.Second
	outboxSize     = 4096
)

func TestOutcomesLetPatchesGoFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db", "secret/own"))
		s.workload("slow", auto, reads("secret/db"))
		s.begin("secret/db", "secret/own")
		s.patchesTake("slow", 2*outboxPatience)
		s.set("secret/own", "password", "two")
		s.settle()
		s.wantTold("web started content-changed", "web completed rolled-out") // No patch is under way.

		s.pass(time.Minute)
		s.rotate("two", "web", "web")
		s.pass(outboxPatience - time.Second)
		s.wantTold()
		s.pass(2 * time.Second) // The patch of the other one is still under way.
		s.wantRolls()
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.pass(outboxPatience)
		s.wantRolls("slow")
		s.wantTold("slow started content-changed", "slow completed rolled-out")
	})
}

func TestAsManyOutcomesAsMayWaitDoNotWaitForPatches(t *testing.T) {
	testkit.Slow(t)
	for _, tt := range []struct {
		name       string
		many, told int
	}{
		{"fewer", outboxSize / 2, 0},
		{"as many as there may be", outboxSize, outboxSize},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.workload("slow", auto, reads("secret/db"))
			for i := range tt.many {
				s.workload("web-"+strconv.Itoa(i), auto, reads("secret/many#user"))
			}
			s.begin("secret/db", "secret/many")
			s.patchesTake("slow", 2*outboxPatience)
			s.set("secret/db", "password", "two")
			s.settle()
			s.set("secret/many", "password", "two") // Nobody reads that, and each is told so.
			s.pass(time.Second)
			if got := len(s.told()); got != tt.told {
				s.Errorf("while a patch is under way, %d outcomes are told, want %d", got, tt.told)
			}
			s.pass(2 * outboxPatience)
			if got := len(s.told()); got != tt.many-tt.told+2 {
				s.Errorf("after that, %d outcomes are told, want %d", got, tt.many-tt.told+2)
			}
		})
	}
}

// takeOnly lets the stream take nothing but the events of sources, until the returned function is called.
func (s *scene) takeOnly(names ...string) (end func()) {
	s.Helper()
	js := s.jetStream()
	stream, err := js.Stream(s.Context(), events.StreamChanges)
	if err != nil {
		s.Fatal(err)
	}
	all := stream.CachedInfo().Config
	take := func(subjects []string) {
		s.Helper()
		config := all
		config.Subjects = subjects
		natstest.Publish(s.T, func() error {
			_, err := js.UpdateStream(s.Context(), config)
			return err
		})
	}
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, events.Subject("demo", sourceNamed(name)))
	}
	take(subjects)
	return func() {
		s.Helper()
		take(all.Subjects)
	}
}

// Nobody reads what changes again and again, and each workload is told so each time.
func TestNothingIsDecidedWhileTooManyOutcomesWait(t *testing.T) {
	testkit.Slow(t)
	const readers = 64
	play(t, func(s *scene) {
		seen := s.instrument()
		behind := func() int64 {
			sources, _ := seen.measurements().value("keyturn.sources.behind", "", "")
			return sources
		}
		s.workload("web", auto, reads("secret/db"))
		for i := range readers {
			s.workload("reader-"+strconv.Itoa(i), auto, reads("secret/many#user"))
		}
		s.begin("secret/db", "secret/many")
		end := s.takeOnly("secret/db", "secret/many")
		s.rotate("two", "web") // A few may wait.
		for i := range outboxSize/readers + 2 {
			s.set("secret/many", "password", strconv.Itoa(i))
			s.pass(100 * time.Millisecond)
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantRolls()
		if behind() == 0 {
			s.Error("no source is shown that the actuator has not taken")
		}
		end()
		s.pass(time.Minute)
		s.wantRolls("web")
		if sources := behind(); sources > 0 {
			s.Errorf("%d sources are shown that the actuator has not taken, want none", sources)
		}
	})
}
