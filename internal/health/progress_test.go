package health

import (
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	const limit = time.Minute
	busy, idle := (*Progress).Busy, (*Progress).Idle
	type event struct {
		after time.Duration // since the previous one
		do    func(*Progress)
	}
	for _, tt := range []struct {
		name   string
		events []event
		then   time.Duration
		want   string // empty if the loop is alive
	}{
		{"a loop that never had work is alive", nil, time.Hour, ""},
		{"a step as long as the limit is alive", []event{{0, busy}}, limit, ""},
		{
			"a step longer than the limit is not",
			[]event{{0, busy}},
			limit + time.Second,
			"in one step for 1m1s, limit 1m0s",
		},
		{
			"a loop that finished its step waits as long as it likes",
			[]event{{0, busy}, {30 * time.Second, idle}},
			time.Hour, "",
		},
		{
			"a new step has the whole time again",
			[]event{{0, busy}, {50 * time.Second, busy}},
			50 * time.Second, "",
		},
		{
			"a loop that is stuck and recovers is alive again",
			[]event{{0, busy}, {time.Hour, idle}},
			0, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			progress := NewProgress(func() time.Time { return now }, limit)
			for _, event := range tt.events {
				now = now.Add(event.after)
				event.do(progress)
			}
			now = now.Add(tt.then)
			var got string
			if err := progress.Check(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("check says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProgressThatIsNilDoesNothing(t *testing.T) {
	var progress *Progress
	progress.Busy()
	progress.Idle()
	if err := progress.Check(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
