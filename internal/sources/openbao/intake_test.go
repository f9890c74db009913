package openbao

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/tests/testkit"
)

// intakeOf returns an intake with room for that many paths.
func intakeOf(t *testing.T, room int) *intake {
	t.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""))
	testkit.Must(t, err)
	i := newIntake("main", newStatus(slog.New(slog.DiscardHandler), time.Now), m, time.Now)
	for n := range maxLooks - room {
		i.looks.put(look{entry: entry{path: strconv.Itoa(n)}, due: time.Now().Add(time.Hour)})
	}
	return i
}

// taken returns the entries of the paths that are due, in the order of the paths.
func (i *intake) taken() (entries []entry) {
	for _, one := range i.looks.take(i.now()) {
		entries = append(entries, one.entry)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries
}

// bodyOf returns lines of that many writes, each of a secret of its own.
func bodyOf(count int) []byte {
	lines := make([][]byte, count)
	for n := range lines {
		lines[n] = writeLine("update", fmt.Sprintf("secret/data/%d", n), 1)
	}
	return bytes.Join(lines, []byte("\n"))
}

// readBody takes the lines of a body, and reports whether it is to be sent again.
func (i *intake) readBody(t *testing.T, body []byte) bool {
	t.Helper()
	full, _, err := i.read(t.Context(), bytes.NewReader(body))
	testkit.Must(t, err)
	return full
}

func TestABodyWithoutRoomIsToBeSentAgain(t *testing.T) {
	for _, test := range []struct {
		name         string
		lines, room  int
		full         bool
		taken, polls int
	}{
		{name: "there is room for all lines", lines: 3, room: 3, taken: 3},
		{name: "there is none for the last", lines: 3, room: 2, full: true, taken: 2},
		{name: "there is none for the first", lines: 2, full: true},
		{name: "there is none for the only line, which a device posts while the store waits", lines: 1, polls: 1},
		{name: "there is none for the end of so many lines that their beginning would be forgotten", lines: maxAgain + 1, room: maxAgain, taken: maxAgain, polls: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := intakeOf(t, test.room)
			full := i.readBody(t, bodyOf(test.lines))
			if taken := len(i.taken()); full != test.full || taken != test.taken || len(i.polls) != test.polls {
				t.Errorf("full %t, %d taken, %d polls; want %t, %d, %d", full, taken, len(i.polls), test.full, test.taken, test.polls)
			}
		})
	}
}

func TestABodyThatIsSentAgainIsTakenOnce(t *testing.T) {
	i := intakeOf(t, 2)
	taken := map[string]int{}
	for range 3 {
		full := i.readBody(t, bodyOf(5))
		for _, e := range i.taken() {
			taken[e.path]++
		}
		if full != (len(taken) < 5) {
			t.Errorf("after %v: full %t", taken, full)
		}
	}
	for path, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times, want once", path, times)
		}
	}
}

func TestIntake_AsksForAPollForEverythingThatItCannotTake(t *testing.T) {
	write := string(writeLine("update", "secret/data/db", 4))
	for _, test := range []struct {
		name  string
		do    func(i *intake)
		polls int
	}{
		{name: "not for nonsense", do: func(i *intake) { i.take(t.Context(), []byte("nonsense")) }},
		{name: "for the start of a line that may be a change", do: func(i *intake) { i.take(t.Context(), []byte(write[:len(write)-1])) }, polls: 1},
		{name: "not for the start of a line about a read", do: func(i *intake) {
			i.take(t.Context(), []byte(strings.Replace(write[:len(write)-1], `"update"`, `"read"`, 1)))
		}},
		{name: "for changes that have no room, once", polls: 1, do: func(i *intake) {
			for n := range 3 {
				i.readBody(t, writeLine("update", fmt.Sprintf("secret/data/%d", n), 1))
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := intakeOf(t, 1)
			test.do(i)
			if len(i.polls) != test.polls {
				t.Errorf("%d polls are requested, want %d", len(i.polls), test.polls)
			}
		})
	}
}

func TestIntake_DoesNotBelieveTimesInTheFuture(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the time of the line
	for _, test := range []struct {
		name           string
		received, want time.Time
	}{
		{name: "a time of the store", received: now.Add(time.Second), want: now},
		{name: "a clock that is a little ahead", received: now.Add(-maxAhead), want: now},
		{name: "a time in the future", received: now.Add(-maxAhead - 1), want: now.Add(-maxAhead - 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := intakeOf(t, 1)
			i.now = func() time.Time { return test.received }
			i.take(t.Context(), writeLine("update", "secret/data/db", 4))
			if got := i.taken(); len(got) != 1 || !got[0].at.Equal(test.want) {
				t.Errorf("%+v, want it at %v", got, test.want)
			}
		})
	}
}

func TestIntake_UsesARequestOnce(t *testing.T) {
	i := intakeOf(t, 10)
	line := writeLine("update", "secret/data/db", 4)
	later := []byte(strings.Replace(string(line), `"time":"2000-01-01T00:00:00Z"`, `"time":"2000-01-01T00:00:01Z"`, 1))
	other := []byte(strings.Replace(string(line), `"id":"1"`, `"id":"2"`, 1))
	unnamed := []byte(strings.Replace(string(line), `"id":"1"`, `"id":""`, 1))
	for _, step := range []struct {
		name string
		line []byte
		want int
	}{
		{name: "the first time", line: line, want: 1},
		{name: "again, from another device", line: later},
		{name: "another request", line: other, want: 1},
		{name: "a line without a request", line: unnamed, want: 1},
		{name: "another one", line: unnamed, want: 1},
	} {
		if i.take(t.Context(), step.line); len(i.taken()) != step.want {
			t.Errorf("%s: want %d paths", step.name, step.want)
		}
	}
}

func TestIntake_KeepsOfSeveralLinesAboutAPathTheLastByTheClockOfTheStore(t *testing.T) {
	i := intakeOf(t, 1)
	for _, version := range []int{4, 6, 5} {
		line := strings.ReplaceAll(string(writeLine("update", "secret/data/db", version)), "T00:00:00Z", fmt.Sprintf("T00:00:0%dZ", version))
		if !i.take(t.Context(), []byte(line)) {
			t.Errorf("there is no room for version %d of a path that waits", version)
		}
	}
	if got := i.taken(); len(got) != 1 || got[0].version != 6 {
		t.Errorf("%+v wait, want version 6", got)
	}
}

func TestRecentRequestsAreBounded(t *testing.T) {
	var r recentRequests
	for n := range uint64(3 * maxRecent) {
		r.add(n)
		if oldest := max(n, maxRecent-1) - (maxRecent - 1); !r.has(n) || !r.has(oldest) {
			t.Fatalf("%d or %d is forgotten", n, oldest)
		}
	}
	if len(r.newest)+len(r.older) > 2*maxRecent || r.has(0) {
		t.Errorf("%d requests are remembered, want at most %d", len(r.newest)+len(r.older), 2*maxRecent)
	}
}
