package project

import (
	"testing"
	"time"
)

func TestAFieldThatSomebodyClearsEachTimeIsWrittenEverLessOften(t *testing.T) {
	now := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	end, writes := now.Add(time.Hour), 0
	var r rewrites
	for now.Before(end) {
		if pause := r.pause(now); pause > 0 {
			now = now.Add(pause)
			continue
		}
		r.add(now)
		writes++
	}
	if writes < 50 || writes > 70 {
		t.Errorf("written %d times within an hour, want about once a minute", writes)
	}
	now = now.Add(quiet + time.Minute)
	r.add(now)
	if pause := r.pause(now); pause > 2*time.Second {
		t.Errorf("after a write that nobody has undone the next one waits for %s, want about a second", pause)
	}
}
