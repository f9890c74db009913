package openbao

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

// newIntake returns an intake with a spool of that size.
func newIntake(t *testing.T, size int) *intake {
	t.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	return &intake{
		store: "main", spool: make(chan entry, size), polls: newPollRequests(),
		status: newStatus(slog.New(slog.DiscardHandler)), metrics: m, now: time.Now,
	}
}

func TestIntake_AsksForAPollForEverythingThatItCannotTake(t *testing.T) {
	write := string(writeLine("update", "secret/data/db", 4))
	tests := []struct {
		name  string
		do    func(i *intake)
		polls int
	}{
		{name: "not for a change", do: func(i *intake) { i.take(t.Context(), []byte(write), true) }},
		{name: "not for a line that is no change", do: func(i *intake) { i.take(t.Context(), []byte("{}"), true) }},
		{name: "not for a sender that is refused", do: func(i *intake) { i.refuse(t.Context()) }},
		{name: "not for a long line that is no change", do: func(i *intake) { i.skip(t.Context(), []byte(strings.Repeat("x", 100))) }},
		{name: "for a long line that may be a change", do: func(i *intake) { i.skip(t.Context(), []byte(write)) }, polls: 1},
		{name: "for a part that was missed", do: func(i *intake) { i.miss(t.Context(), malformed) }, polls: 1},
		{name: "for changes that have no room, once", polls: 1, do: func(i *intake) {
			for range 3 {
				i.take(t.Context(), []byte(write), true)
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
	i.take(t.Context(), line, true)
	clear(line)
	if e := <-i.spool; e.path != "secret/data/db" || !e.authenticated || e.received.IsZero() {
		t.Errorf("%+v", e)
	}
}
