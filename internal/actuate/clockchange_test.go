package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
)

// TestAWorkloadIsRolledInItsWindowInTheNightsThatChangeTheClocks uses windows of one hour, so the spread is over after three minutes. In 2026, Berlin
// skips 02:00 to 03:00 on March 29 and has it twice on October 25, New York skips it on March 8 and has 01:00 to 02:00 twice on November 1.
func TestAWorkloadIsRolledInItsWindowInTheNightsThatChangeTheClocks(t *testing.T) {
	tests := []struct{ name, window, before, opens, next string }{
		{"Berlin skips the opening", "30 2 * * * for 1h Europe/Berlin", "2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		{"Berlin skips the middle", "30 1 * * * for 1h Europe/Berlin", "2026-03-29T01:29:59+01:00", "2026-03-29T01:30:00+01:00", "2026-03-30T01:30:00+02:00"},
		{"Berlin has the opening twice", "30 2 * * * for 1h Europe/Berlin", "2026-10-25T02:29:59+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		{"Berlin has the middle twice", "30 1 * * * for 1h Europe/Berlin", "2026-10-25T01:29:59+02:00", "2026-10-25T01:30:00+02:00", "2026-10-26T01:30:00+01:00"},
		{"New York skips the opening", "30 2 * * * for 1h America/New_York", "2026-03-08T01:59:59-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		{"New York skips the middle", "30 1 * * * for 1h America/New_York", "2026-03-08T01:29:59-05:00", "2026-03-08T01:30:00-05:00", "2026-03-09T01:30:00-04:00"},
		{"New York has the opening twice", "30 1 * * * for 1h America/New_York", "2026-11-01T01:29:59-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"New York has the middle twice", "30 0 * * * for 1h America/New_York", "2026-11-01T00:29:59-04:00", "2026-11-01T00:30:00-04:00", "2026-11-02T00:30:00-05:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var times []time.Time
			for _, text := range []string{tt.before, tt.opens, tt.next} {
				at, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				times = append(times, at)
			}
			before, opens, next := times[0], times[1], times[2]
			for _, decision := range []struct {
				at    time.Time
				until time.Time // zero: it is rolled
			}{
				{at: before, until: opens},
				{at: opens.Add(3 * time.Minute)},
				{at: opens.Add(time.Hour - time.Nanosecond)},
				{at: opens.Add(time.Hour), until: next},
			} {
				options := testOptions()
				options.Now, options.Window = func() time.Time { return decision.at }, tt.window
				a, err := New(options)
				if err != nil {
					t.Fatal(err)
				}
				w, _ := a.index.Read(deployments, webDeployment("50", rollOn("auto")))
				a.index.Listed(w, "")
				l := newLoop(a.surroundings, unwritten(a))
				defer finishPatches(l)
				l.debounce.release(l.debounce.pend(w, changeOf(nil)), decision.at)
				l.dispatcher.dispatch(t.Context())
				p := l.debounce.byKey[w.Key()]
				switch {
				case decision.until.IsZero() && p != nil:
					t.Errorf("at %s it waits until %s: %s", decision.at, p.due, p.held)
				case decision.until.IsZero():
				case p == nil || p.held != plan.WindowClosed:
					t.Errorf("at %s it does not wait for a window: %+v", decision.at, p)
				case p.due.Before(decision.until) || p.due.After(decision.until.Add(3*time.Minute)):
					t.Errorf("at %s it waits until %s, want %s and a moment", decision.at, p.due, decision.until)
				}
			}
		})
	}
}
