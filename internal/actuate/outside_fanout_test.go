//go:build !race

package actuate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// Many workloads read one source. One of them stays half way, in the middle of the waves.
func TestAFanOutBeginsNoWaveBeforeTheLowerOnesAreFinished(t *testing.T) {
	const many, waves, slow = 60, 10, 3
	for _, tt := range []struct {
		name        string
		maxRollouts int
		// closed says that every other workload, in the lowest wave, has a window that is closed.
		closed bool
	}{
		{"with a limit", 50, false},
		{"without a limit", 0, false},
		{"with a limit and closed windows", 50, true},
		{"with closed windows", 0, true},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.MaxRollouts = tt.maxRollouts
			var first, then, rest []string
			waveOf := make(map[string]int)
			for i := range many {
				name, aspects := fmt.Sprintf("web-%02d", i), []aspect{auto, reads("secret/db"), inWave(i % waves)}
				waveOf[name] = i % waves
				switch {
				case tt.closed && i%2 == 0:
					waveOf[name] = -1
					aspects = append(aspects, inWave(-1), annotated(workload.AnnotationWindow, "5 0 * * * for 1h"))
					rest = append(rest, name)
				case i%waves <= slow:
					first = append(first, name)
				default:
					then = append(then, name)
				}
				s.workload(name, aspects...)
			}
			// rolledInOrder wants these workloads to have been rolled, wave by wave.
			rolledInOrder := func(names []string) {
				s.Helper()
				seen, wave := s.seen, -1
				for _, w := range s.writesSince(&seen) {
					if w.rolls && waveOf[w.workload] < wave {
						s.Errorf("%s of wave %d is begun after wave %d", w.workload, waveOf[w.workload], wave)
					}
					if w.rolls {
						wave = waveOf[w.workload]
					}
				}
				s.wantRolls(names...)
			}
			stalled := fmt.Sprintf("web-%02d", slow)
			s.begin("secret/db")
			s.stall(stalled)
			s.set("secret/db", "password", "two")
			s.settle()
			s.pass(10 * time.Second)
			rolledInOrder(first)
			s.finish(stalled)
			s.pass(10 * time.Second)
			rolledInOrder(then)
			s.pass(70 * time.Minute) // The windows open.
			rolledInOrder(rest)
		})
	}
}
