package forcesync

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// simulation is a cluster in which anything can happen at any time: versions are written, actuators take over, the API server and the
// operator fail, a standby of the store answers with an old version.
type simulation struct {
	*bed
	random *rand.Rand
	// lags lets a standby answer. Then no actuator takes over: the next one would not know which ExternalSecrets got an old version.
	lags bool
	// declared is the lag of the store, if it declares one: then everything is read as it was that long ago.
	declared time.Duration
	// versions has the last version of each path, writes when each version was written, last the event of the last one, and open the events that are
	// not settled.
	versions map[string]int64
	writes   map[string][]time.Time
	last     map[string]events.Change
	open     map[string][]*event
	// lag is how many more times a standby, which has an old version, answers about each path.
	lag map[string]int
	log []string
}

var simulatedPaths = map[string]string{"a": "p", "b": "p", "c": "p", "d": "q", "e": "q", "f": "p+q", "child-0": "shop/db", "child-1": "shop/db"}

func newSimulation(b *bed, seed uint64) *simulation {
	s := &simulation{
		bed: b, random: rand.New(rand.NewPCG(seed, 3)), lags: seed%2 == 0, versions: make(map[string]int64), writes: make(map[string][]time.Time),
		last: make(map[string]events.Change), open: make(map[string][]*event), lag: make(map[string]int), log: []string{fmt.Sprintf("seed %d", seed)},
	}
	if seed%3 == 1 {
		s.lags, s.declared = false, 8*time.Second
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.secret(name, simulatedPaths[name], "")
	}
	b.secret("f", "p", ", dataFrom: [{extract: {key: q}}]")
	b.cluster(2)
	b.read = func(name types.NamespacedName) string {
		content := s.at(name.Name, time.Now().Add(-s.declared))
		for path := range strings.SplitSeq(simulatedPaths[name.Name], "+") {
			if s.lag[path] > 0 {
				s.lag[path]--
				content = b.written[name]
			}
		}
		return content
	}
	return s
}

// at returns what an ExternalSecret would have read at a time.
func (s *simulation) at(name string, when time.Time) string {
	var parts []string
	for path := range strings.SplitSeq(simulatedPaths[name], "+") {
		version := 0
		for _, written := range s.writes[path] {
			if !written.After(when) {
				version++
			}
		}
		parts = append(parts, fmt.Sprintf("%s%d", path, version))
	}
	return strings.Join(parts, " ")
}

func (s *simulation) notef(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *simulation) rotateOne() {
	path := []string{"p", "q", "shop/db"}[s.random.IntN(3)]
	version := int64(0)
	s.with(func() {
		s.versions[path]++
		version = s.versions[path]
		s.writes[path] = append(s.writes[path], time.Now())
		if s.lags {
			s.lag[path] = s.random.IntN(maxRepeats + 1)
		}
	})
	s.notef("%s: %s is at %d", time.Now().Format("15:04:05.0"), path, version)
	s.last[path] = rotation(path, version, func(c *events.Change) {
		c.ResourceVersion, c.Store.LagSeconds = strconv.FormatInt(time.Now().UnixNano(), 10), int64(s.declared/time.Second)
	})
	s.open[path] = append(s.open[path], s.deliver(s.Context(), s.last[path]))
}

// restart makes another actuator take over. The last event of each path comes again if one is not settled.
func (s *simulation) restart() {
	s.notef("another actuator")
	undone := make(map[string]bool)
	for path, list := range s.open {
		for _, e := range list {
			if done, _ := s.isSettled(e); !done {
				undone[path] = true
			}
		}
	}
	s.start()
	clear(s.open)
	for path := range undone {
		s.open[path] = []*event{s.deliver(s.Context(), s.last[path])}
	}
}

func (s *simulation) step() {
	switch n := s.random.IntN(100); {
	case n < 40:
		s.rotateOne()
	case n < 50 && !s.lags:
		s.restart()
	case n < 60:
		s.with(func() { s.refuse = apierrors.NewTimeoutError("later", 1) })
	case n < 70:
		s.with(func() { s.refuse = nil })
	case n < 80:
		s.with(func() { s.failing[string(rune('a'+s.random.IntN(6)))] = true })
	case n < 90:
		s.recover()
	default:
		s.pass(time.Duration(s.random.IntN(20)) * time.Second)
	}
	s.pass(time.Duration(s.random.IntN(1500)) * time.Millisecond)
}

// recover makes the operator retry what failed.
func (s *simulation) recover() {
	s.with(func() {
		for name := range s.failing {
			delete(s.failing, name)
			s.queue <- types.NamespacedName{Namespace: "shop", Name: name}
		}
	})
}

// end waits for everything to finish, and checks the result.
func (s *simulation) end() {
	s.with(func() { s.refuse = nil })
	s.pass(maxRetryDelay)
	s.recover()
	s.pass(10 * time.Minute)
	var problems []string
	for path, list := range s.open {
		for _, e := range list {
			if done, err := s.isSettled(e); !done || err != nil {
				problems = append(problems, fmt.Sprintf("an event of %s is settled: %t (%v), want true without an error", path, done, err))
			}
		}
	}
	s.ask(func() {
		if left := s.left(); left != "" {
			problems = append(problems, "something is left: "+left)
		}
	})
	s.with(func() {
		for name := range simulatedPaths {
			rotated := slices.ContainsFunc(strings.Split(simulatedPaths[name], "+"), func(path string) bool { return s.versions[path] > 0 })
			if got, want := s.written[types.NamespacedName{Namespace: "shop", Name: name}], s.at(name, time.Now()); got != want && rotated {
				problems = append(problems, fmt.Sprintf("%s has %q, not %q", name, got, want))
			}
		}
	})
	if len(problems) > 0 {
		s.Fatalf("%s\n%s", strings.Join(s.log, "\n"), strings.Join(problems, "\n"))
	}
}

// Whatever happens, in whatever order: in the end every ExternalSecret has what is in the store, every event is settled, and nothing is left.
func TestWhateverHappensEveryExternalSecretIsSynced(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(newBed(t), seed)
			s.start()
			for range 5 + s.random.IntN(40) {
				s.step()
			}
			s.end()
			s.stop()
		})
	}
}
