package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func mustParse(t testing.TB, text string) Windows {
	t.Helper()
	w, err := ParseWindows(text)
	testkit.Must(t, err)
	return w
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	testkit.Must(t, err)
	return parsed
}

// In 2026, Berlin skips 02:00 to 03:00 on March 29 and shows it twice on October 25. TestAWindowIsOpenWhenAClockOnTheWallSaysSo has other zones.
func TestAWindowOpensByTheWallClock(t *testing.T) {
	const night = "0 1 * * 1-5 for 3h Europe/Berlin"
	tests := []struct {
		name, windows, now string
		// want is when the window opens, or now if it is open.
		want string
	}{
		{"at its opening", night, "2026-01-12T01:00:00+01:00", "now"},
		{"just before its end", night, "2026-01-12T03:59:59+01:00", "now"},
		{"at its end", night, "2026-01-12T04:00:00+01:00", "2026-01-13T01:00:00+01:00"},
		{"before a weekend", night, "2026-01-16T12:00:00+01:00", "2026-01-19T01:00:00+01:00"},
		{"in another zone than it is asked in", night, "2026-01-12T00:30:00Z", "now"},
		{"without a zone it is UTC", "0 1 * * * for 1h", "2026-07-01T00:30:00Z", "2026-07-01T01:00:00Z"},
		{"by names", "30 22 * jan,feb fri for 8h", "2026-02-28T06:00:00Z", "now"},
		{"on a day of the month or of the week", "0 0 1 * 0 for 1h", "2026-07-02T00:00:00Z", "2026-07-05T00:00:00Z"},
		{"over the end of a year", "0 23 31 12 * for 24h", "2027-01-01T22:00:00Z", "now"},

		{"the hour that Berlin skips opens when it goes on", "30 2 * * * for 1h Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00+02:00"},
		{"and for its whole duration", "30 2 * * * for 1h Europe/Berlin", "2026-03-29T03:59:59+02:00", "now"},
		{"a duration over it is elapsed time", "0 1 * * * for 3h Europe/Berlin", "2026-03-29T04:59:59+02:00", "now"},
		{"and ends an hour later on the wall", "0 1 * * * for 3h Europe/Berlin", "2026-03-29T05:00:00+02:00", "2026-03-30T01:00:00+02:00"},

		{"the hour that Berlin has twice opens the first time", "30 2 * * * for 30m Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T02:30:00+02:00"},
		{"and is over at the second", "30 2 * * * for 30m Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"at the second time it has opened an hour ago", "30 2 * * * for 2h Europe/Berlin", "2026-10-25T02:30:00+01:00", "now"},
		{"a duration over both is elapsed time", "0 1 * * * for 3h Europe/Berlin", "2026-10-25T02:59:59+01:00", "now"},
		{"and ends an hour earlier on the wall", "0 1 * * * for 3h Europe/Berlin", "2026-10-25T03:00:00+01:00", "2026-10-26T01:00:00+01:00"},
		{"each hour of the wall opens once", "0 * * * * for 10m Europe/Berlin", "2026-10-25T02:15:00+02:00", "2026-10-25T03:00:00+01:00"},

		{"a zone of half an hour", "15 2 * * * for 1h Australia/Lord_Howe", "2026-10-03T15:00:00Z", "2026-10-04T02:30:00+11:00"},
		{"a zone that skips a day", "0 12 30 12 * for 1h Pacific/Apia", "2011-12-30T00:00:00Z", "2011-12-31T00:00:00+14:00"},

		{"the next of several", night + "; 0 12 * * 6 for 1h Europe/Berlin", "2026-01-16T12:00:00+01:00", "2026-01-17T12:00:00+01:00"},
		{"none is always open", "always", "2026-01-16T02:15:00Z", "now"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := at(t, tt.now)
			got, ok := mustParse(t, tt.windows).Opening(now, 0)
			if open := mustParse(t, tt.windows).IsOpen(now); open != (tt.want == "now") {
				t.Errorf("it is open: %t", open)
			}
			if tt.want == "now" {
				if !ok || got.After(now) {
					t.Errorf("it opens at %s, want that it is open", got)
				}
				return
			}
			if want := at(t, tt.want); !ok || !got.Equal(want) {
				t.Errorf("it opens at %s, %t, want %s", got, ok, want)
			}
		})
	}
}

func TestWorkloadsBeginOneAfterTheOtherWithinAFewMinutes(t *testing.T) {
	tests := []struct {
		name, windows, now string
		share              float64
		want               string
	}{
		{"the last within a twentieth of the duration", "0 1 * * * for 1h", "2026-01-12T00:00:00Z", 0.999, "2026-01-12T01:02:59Z"},
		{"and within five minutes", "0 1 1 * * for 24h", "2026-01-12T00:00:00Z", 0.999, "2026-02-01T01:04:59Z"},
		{"once it is open, until the share has come", "0 1 * * * for 1h", "2026-01-12T01:01:00Z", 0.5, "2026-01-12T01:01:30Z"},
		{"not again in one that overlaps", "0 1 * * * for 1h; 30 1 * * * for 1h", "2026-01-12T01:30:00Z", 0.999, "now"},
		{"nor in one that goes on alone", "0 1 * * * for 1h; 0 2 * * * for 10h", "2026-01-12T02:00:00Z", 0.999, "now"},
		{"the next is the one that comes first with its share", "0 2 * * * for 24m; 1 2 * * * for 1m", "2026-01-12T01:00:00Z", 0.999, "2026-01-12T02:01:02Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := at(t, tt.now)
			got, ok := mustParse(t, tt.windows).Opening(now, tt.share)
			if tt.want == "now" {
				if !ok || got.After(now) {
					t.Errorf("it may begin at %s, want now", got)
				}
				return
			}
			if want := at(t, tt.want); !ok || !got.Truncate(time.Second).Equal(want) {
				t.Errorf("it may begin at %s, %t, want %s", got, ok, want)
			}
		})
	}
}

// TestAWindowIsOpenWhenAClockOnTheWallSaysSo compares windows with a clock that is read every minute.
func TestAWindowIsOpenWhenAClockOnTheWallSaysSo(t *testing.T) {
	tests := []struct{ text, from string }{
		{"*/7 1-3 * * * for 11m Europe/Berlin", "2026-03-28T20:00:00Z"},
		{"*/7 1-3 * * * for 11m Europe/Berlin", "2026-10-24T20:00:00Z"},
		{"17 0,1,2 * * * for 45m America/New_York", "2026-03-07T20:00:00Z"},
		{"17 0,1,2 * * * for 45m America/New_York", "2026-10-31T20:00:00Z"},
		{"0 * * * * for 20m Australia/Lord_Howe", "2026-04-04T08:00:00Z"},
		{"59 23 * * * for 2h30m America/Sao_Paulo", "2018-11-03T20:00:00Z"}, // It skipped midnight.
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			w := mustParse(t, tt.text)
			one, from := w.list[0], at(t, tt.from)
			var until, seen time.Time // seen is the latest time that the clock has shown.
			for now := from.Add(-3 * time.Hour); now.Before(from.Add(24 * time.Hour)); now = now.Add(time.Minute) {
				shown := wallClock(now, one.zone)
				if seen.IsZero() {
					seen = shown.Add(-time.Minute)
				}
				// An opening that the clock has not shown before is now, even if the clock has skipped it.
				if opening := one.opens.Next(seen); !opening.IsZero() && !opening.After(shown) {
					until = now.Add(one.duration)
				}
				if shown.After(seen) {
					seen = shown
				}
				if now.Before(from) {
					continue
				}
				got, _ := w.Opening(now, 0)
				if open := now.Before(until); open == got.After(now) {
					t.Fatalf("at %s: it opens at %s, and open is %t", now.In(one.zone), got.In(one.zone), open)
				}
			}
		})
	}
}

func TestWindowsThatNobodyCanMeanAreRefused(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "want \"<minute>"},
		{"four fields", "0 1 * * for 3h", "want \"<minute>"},
		{"an hour that no day has", "0 24 * * * for 3h", "reading the fields of cron"},
		{"a day that no month has", "0 0 30 2 * for 3h", "it never opens"},
		{"a name of cron", "@daily 1 * * * for 3h", "want five fields"},
		{"no time at all", "0 1 * * * for 0s", "the duration is 0s, want more than 0"},
		{"more than a week", "0 1 * * * for 169h", "want more than 0 and at most 168h"},
		{"the zone of the machine", "0 1 * * * for 3h Local", `"Local" is not the IANA name`},
		{"a file", "0 1 * * * for 3h ../../etc/passwd", "is not the IANA name"},
		{"a book", strings.Repeat(" ", maxText) + "0 1 * * * for 3h", "it is longer than"},
		{"too many", strings.Repeat("0 1 * * * for 3h;", maxWindows) + "0 1 * * * for 3h", "there are 17 windows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := ParseWindows(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %v, want an error with %q in one line", w, err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"0 1 * * 1-5 for 3h Europe/Berlin", "always", "*/5 * * * * for 1m; 0 0 29 2 * for 168h America/New_York", "0 0 30 2 * for 1h", "TZ=",
		"59/0 0-23/99999999999999999999 ? jan-dec sun for 1ns Pacific/Apia",
	} {
		f.Add(text, int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		w, err := ParseWindows(text)
		if err != nil || len(w.list) == 0 {
			return
		}
		now := time.Unix(seconds%5_000_000_000, 0)
		opening, ok := w.Opening(now, 0.5)
		if !ok {
			return // The next leap day may be more than five years away.
		}
		if opening.After(now) {
			if again, ok := w.Opening(opening, 0.5); !ok || again.After(opening) {
				t.Errorf("%q at %s: it is to open at %s, and is not open then but at %s, %t", text, now, opening, again, ok)
			}
		}
	})
}
