//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// The windows last an hour, so the spread is over after three minutes. In 2026, Berlin skips 02:00 to 03:00 on March 29 and has it twice on October 25,
// New York skips it on March 8 and has 01:00 to 02:00 twice on November 1.
func TestAWorkloadIsRolledInItsWindowInTheNightsThatChangeTheClocks(t *testing.T) {
	tests := []struct{ name, window, opens, next string }{
		{"Berlin skips the opening", "30 2 * * * for 1h Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		{"Berlin skips the middle", "30 1 * * * for 1h Europe/Berlin", "2026-03-29T01:30:00+01:00", "2026-03-30T01:30:00+02:00"},
		{"Berlin has the opening twice", "30 2 * * * for 1h Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		{"Berlin has the middle twice", "30 1 * * * for 1h Europe/Berlin", "2026-10-25T01:30:00+02:00", "2026-10-26T01:30:00+01:00"},
		{"New York skips the opening", "30 2 * * * for 1h America/New_York", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		{"New York skips the middle", "30 1 * * * for 1h America/New_York", "2026-03-08T01:30:00-05:00", "2026-03-09T01:30:00-04:00"},
		{"New York has the opening twice", "30 1 * * * for 1h America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"New York has the middle twice", "30 0 * * * for 1h America/New_York", "2026-11-01T00:30:00-04:00", "2026-11-02T00:30:00-05:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(s *scene) {
				at := func(text string) time.Time {
					at, err := time.Parse(time.RFC3339, text)
					if err != nil {
						s.Fatal(err)
					}
					return at
				}
				opens, next := at(tt.opens), at(tt.next)
				s.options.Window = tt.window
				s.workload("web", auto, reads("secret/db"))
				s.observe("secret/db")
				s.clockAt(opens.Add(-2 * time.Minute))
				s.start()
				s.pass(time.Minute)
				s.set("secret/db", "password", "before")
				s.settle()
				s.wantHeldUntilWindow("web", opens)
				s.passUntilClock(opens.Add(-time.Second))
				s.wantRolls()
				s.passUntilClock(opens.Add(3*time.Minute + time.Second))
				s.wantRolls("web")

				s.passUntilClock(opens.Add(time.Hour - 2*time.Second))
				s.set("secret/db", "password", "in time")
				s.settle()
				s.wantRolls("web")
				s.passUntilClock(opens.Add(time.Hour))
				s.set("secret/db", "password", "too late")
				s.settle()
				s.wantRolls()
				s.wantHeldUntilWindow("web", next)

				s.clockAt(next.Add(-time.Minute))
				s.restart()
				s.passUntilClock(next.Add(-time.Second))
				s.wantRolls()
				s.passUntilClock(next.Add(3*time.Minute + time.Second))
				s.wantRolls("web")
			})
		})
	}
}
