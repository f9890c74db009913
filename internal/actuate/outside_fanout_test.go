//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			s.settled("secret/db", "password", "two")
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

// TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime has two workloads that read the same. The one of the higher wave has the
// earlier moment in the window.
func TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime(t *testing.T) {
	const nightly = "0 1 * * * for 1h"
	opening := midnight.Add(time.Hour)
	before, after := opening.Add(-30*time.Minute), opening.Add(time.Second)
	inWindow, recently := annotated(workload.AnnotationWindow, nightly), []aspect{
		annotated(workload.AnnotationMinInterval, "1h"), annotated("keyturn.dev/rolled-at", opening.Add(-time.Minute).Format(time.RFC3339)),
	}
	tests := []struct {
		name          string
		first, second []aspect
		// at is when the source changes, and waits says that the second one waits for the first one.
		at    time.Time
		waits bool
	}{
		{"its moment is to come", []aspect{inWindow}, []aspect{inWindow}, before, true},
		{"to one that has no window, too", []aspect{inWindow}, nil, after, true},
		{"its window is closed", []aspect{inWindow}, nil, before, false},
		{"its window is not valid", []aspect{annotated(workload.AnnotationWindow, "nightly")}, nil, after, false},
		{"it is on hold in its window", []aspect{inWindow, onHold}, nil, after, false},
		{"it was rolled recently", recently, nil, after, false},
		{"it was rolled recently and its moment is to come", append(slices.Clone(recently), inWindow), nil, after, false},
	}
	first, second := "", ""
	for i := 1; first == "" || second == ""; i++ {
		name := fmt.Sprintf("web-%d", i)
		switch delay := momentOf(t, name, nightly, before).Sub(opening); {
		case delay > 2*time.Minute:
			first = name
		case delay < time.Minute:
			second = name
		}
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload(first, append(tt.first, auto, inWave(0), reads("secret/db"))...)
			s.workload(second, append(tt.second, auto, inWave(1), reads("secret/db"))...)
			s.begin("secret/db")
			s.passUntil(tt.at)
			s.settled("secret/db", "password", "two")
			if !tt.waits {
				s.pass(10 * time.Second)
				s.wantRolls(second)
				return
			}
			moment := momentOf(s.T, first, nightly, before)
			s.passUntil(moment.Add(-10 * time.Second))
			s.wantRolls()
			s.wantAmongTold(second + " held lower-wave")
			s.passUntil(moment.Add(10 * time.Second))
			if rolls := s.whoRolled(); !slices.Equal(rolls, []string{first, second}) {
				s.Errorf("at the moment of %s, rolled are %q", first, rolls)
			}
		})
	}
}

// momentOf returns when a Deployment may be rolled in windows, after a time at which they are closed.
func momentOf(t *testing.T, name, windows string, closed time.Time) time.Time {
	t.Helper()
	deployments, _ := workload.BuiltIn().Named("deployment")
	w, ok := workload.Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{workload.AnnotationWindow: windows},
	}}, workload.Reading{})
	if !ok {
		t.Fatal("it is not read")
	}
	at, _ := w.Opening(closed)
	return at
}
