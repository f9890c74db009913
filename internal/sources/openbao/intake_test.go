package openbao

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

// newIntake returns an intake with a spool of that size, and room for as many hints.
func newIntake(t *testing.T, size int) *intake {
	t.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	return &intake{
		store: "main", spool: make(chan entry, size), hints: make(chan hint, size+maxRoomTakers), polls: newPollRequests(),
		status: newStatus(slog.New(slog.DiscardHandler), time.Now), metrics: m, recent: newRecentRequests(),
		bodies: newPlaces(maxBodies), waiting: newPlaces(maxWaiting), now: time.Now,
	}
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
			for version := range 3 {
				i.take(t.Context(), writeLine("update", "secret/data/db", version+1))
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
	if e := <-i.spool; e.path != "secret/data/db" || e.received.IsZero() {
		t.Errorf("%+v", e)
	}
}

func TestIntake_DoesNotBelieveTimesInTheFuture(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name              string
		at, created       time.Time
		wantAt, wantTaken time.Time
	}{
		{name: "times of a store", at: now.Add(-time.Second), created: now.Add(-time.Minute), wantAt: now.Add(-time.Second), wantTaken: now.Add(-time.Minute)},
		{name: "a clock that is a little ahead", at: now.Add(maxAhead), created: now.Add(maxAhead), wantAt: now.Add(maxAhead), wantTaken: now.Add(maxAhead)},
		{name: "times in the future", at: now.AddDate(100, 0, 0), created: now.Add(maxAhead + 1), wantAt: now},
		{name: "no time", wantAt: now},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := entry{at: test.at, created: test.created, received: now}
			e.checkTimes()
			if !e.at.Equal(test.wantAt) || !e.created.Equal(test.wantTaken) {
				t.Errorf("at %v, created %v; want %v, %v", e.at, e.created, test.wantAt, test.wantTaken)
			}
			i := newIntake(t, 1)
			i.now = func() time.Time { return now.AddDate(-1, 0, 0) }
			i.take(t.Context(), writeLine("update", "secret/data/db", 4))
			if e := <-i.spool; e.at.After(i.now().Add(maxAhead)) {
				t.Errorf("a line that was received at %v is of %v", e.received, e.at)
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
		{name: "again, from another device", line: later, want: 1},
		{name: "another request", line: other, want: 2},
		{name: "a line without a request", line: unnamed, want: 3},
		{name: "another one", line: unnamed, want: 4},
	} {
		if i.take(t.Context(), step.line); len(i.spool) != step.want {
			t.Errorf("%s: %d entries, want %d", step.name, len(i.spool), step.want)
		}
	}
}

func TestIntake_UsesAgainWhatHadNoRoom(t *testing.T) {
	i := newIntake(t, 1)
	first, second := writeLine("update", "secret/data/db", 4), writeLine("update", "secret/data/db", 5)
	i.take(t.Context(), first)
	i.take(t.Context(), second)
	<-i.spool
	if i.take(t.Context(), second); len(i.spool) != 1 {
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
