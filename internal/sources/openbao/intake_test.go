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
)

// newIntake returns an intake with room for that many paths.
func newIntake(t *testing.T, room int) *intake {
	t.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	i := &intake{
		store: "main", looks: newLooks(), polls: newPollRequests(),
		status: newStatus(slog.New(slog.DiscardHandler), time.Now), metrics: m, recent: newRecentRequests(),
		bodies: make(chan struct{}, maxBodies), now: time.Now,
	}
	for n := range maxLooks - room {
		i.looks.putBack(look{entry: entry{path: strconv.Itoa(n)}, due: time.Now().Add(time.Hour)})
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

func TestIntake_AsksForAPollForEverythingThatItCannotTake(t *testing.T) {
	write := string(writeLine("update", "secret/data/db", 4))
	tests := []struct {
		name  string
		do    func(i *intake)
		polls int
	}{
		{name: "not for a change", do: func(i *intake) { i.take(t.Context(), []byte(write)) }},
		{name: "not for a line that is no change", do: func(i *intake) { i.take(t.Context(), []byte("{}")) }},
		{name: "not for a sender that is refused", do: func(i *intake) { i.refuse(t.Context()) }},
		{name: "not for a long line that is no change", do: func(i *intake) { i.skip(t.Context(), []byte(strings.Repeat("x", 100))) }},
		{name: "not for nonsense", do: func(i *intake) { i.take(t.Context(), []byte("nonsense")) }},
		{name: "for the start of a line that may be a change", do: func(i *intake) { i.take(t.Context(), []byte(write[:len(write)-1])) }, polls: 1},
		{name: "for a long line that may be a change", do: func(i *intake) { i.skip(t.Context(), []byte(write)) }, polls: 1},
		{name: "for a part that was missed", do: func(i *intake) { i.miss(t.Context(), malformed) }, polls: 1},
		{name: "for changes that have no room, once", polls: 1, do: func(i *intake) {
			for n := range 3 {
				b := batch{to: i}
				if err := b.read(t.Context(), bytes.NewReader(writeLine("update", fmt.Sprintf("secret/data/%d", n), 1))); err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i := newIntake(t, 1)
			test.do(i)
			if len(i.polls) != test.polls {
				t.Errorf("%d polls are requested, want %d", len(i.polls), test.polls)
			}
		})
	}
}

func TestIntake_DoesNotKeepTheLine(t *testing.T) {
	i := newIntake(t, 1)
	line := writeLine("update", "secret/data/db", 4)
	i.take(t.Context(), line)
	clear(line)
	if got := i.taken(); len(got) != 1 || got[0].path != "secret/data/db" || got[0].received.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestIntake_DoesNotBelieveTimesInTheFuture(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the time of the line
	for _, test := range []struct {
		name     string
		received time.Time
		want     time.Time
	}{
		{name: "a time of the store", received: now.Add(time.Second), want: now},
		{name: "a clock that is a little ahead", received: now.Add(-maxAhead), want: now},
		{name: "a time in the future", received: now.Add(-maxAhead - 1), want: now.Add(-maxAhead - 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newIntake(t, 1)
			i.now = func() time.Time { return test.received }
			i.take(t.Context(), writeLine("update", "secret/data/db", 4))
			if got := i.taken(); len(got) != 1 || !got[0].at.Equal(test.want) {
				t.Errorf("%+v, want it at %v", got, test.want)
			}
		})
	}
}

func TestIntake_UsesARequestOnce(t *testing.T) {
	i := newIntake(t, 10)
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
	i := newIntake(t, 1)
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

func TestIntake_UsesAgainWhatHadNoRoom(t *testing.T) {
	i := newIntake(t, 1)
	first, second := writeLine("update", "secret/data/a", 4), writeLine("update", "secret/data/b", 5)
	if !i.take(t.Context(), first) || i.take(t.Context(), second) {
		t.Error("want room for one path")
	}
	i.taken()
	if !i.take(t.Context(), second) || len(i.taken()) != 1 {
		t.Error("the second line is taken for one that was used")
	}
}

func TestRecentRequestsAreBounded(t *testing.T) {
	r := newRecentRequests()
	for n := range 2 * maxRecent {
		r.add(&entry{request: "a", version: int64(n)})
	}
	if len(r.known) != maxRecent || r.has(&entry{request: "a", version: maxRecent - 1}) || !r.has(&entry{request: "a", version: maxRecent}) {
		t.Errorf("%d requests are remembered, want the last %d", len(r.known), maxRecent)
	}
}
