package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	pausePeriodKey = "deployment.reloader.stakater.com/pause-period"
	pausedAtKey    = "deployment.reloader.stakater.com/paused-at"
)

var pausedAt = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// pausing reads a Deployment with annotations as Reloader does.
func pausing(t *testing.T, annotations map[string]string) *Workload {
	t.Helper()
	return readAs(t, deployments, webDeployment("1", annotations), Reading{Reloader: true})
}

func TestChangesAreGatheredInThePauseThatTheyCameInOrBegin(t *testing.T) {
	begun := map[string]string{pausePeriodKey: "30s", pausedAtKey: "2026-03-14T15:09:26Z"}
	tests := []struct {
		name        string
		annotations map[string]string
		since, now  time.Duration // after pausedAt
		want        time.Duration // the end, after pausedAt
		begins      bool
	}{
		{"the first", map[string]string{pausePeriodKey: "30s"}, time.Second, 2 * time.Second, 31 * time.Second, true},
		{"one within the pause", begun, 20 * time.Second, 21 * time.Second, 30 * time.Second, false},
		{"the first after a pause that is over", begun, 31 * time.Second, 32 * time.Second, 61 * time.Second, true},
		{"a pause that would begin in the future", begun, -time.Minute, -clockTolerance - 1, -30 * time.Second, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			end, begins := pausing(t, test.annotations).Pause.Of(pausedAt.Add(test.since), pausedAt.Add(test.now))
			if !end.Equal(pausedAt.Add(test.want)) || begins != test.begins {
				t.Errorf("got %s, begins: %t; want %s after %s, %t", end, begins, test.want, pausedAt, test.begins)
			}
		})
	}
	if end, begins := pausing(t, begun).Pause.Of(time.Time{}, pausedAt); begins || !end.Equal(pausedAt.Add(30*time.Second)) {
		t.Errorf("without a change, it ends at %s, begins: %t", end, begins)
	}
	wrong := pausing(t, map[string]string{pausePeriodKey: "5 minutes"})
	want := []string{`deployment.reloader.stakater.com/pause-period: "5 minutes" is not a duration of more than zero, such as 30s or 5m`}
	testkit.WantEqual(t, "problems", want, lines(wrong.Problems))
}

func TestAPauseIsWrittenAndTakenAwayWithoutARoll(t *testing.T) {
	const path = `"path":"/metadata/annotations/deployment.reloader.stakater.com~1paused-at"`
	before := map[string]string{pausePeriodKey: "30s"}
	during := map[string]string{pausePeriodKey: "30s", pausedAtKey: "2026-03-14T15:09:26Z"}
	tests := []struct {
		name        string
		annotations map[string]string
		write       Write
		want        []string
		without     string
	}{
		{
			"a note that begins one", before,
			Write{PausedAt: pausedAt.Add(1)},
			[]string{`{"op":"test",` + path + `,"value":null}`, `{"op":"add",` + path + `,"value":"2026-03-14T15:09:27Z"}`},
			"/spec/template",
		},
		{"a roll", during, Write{Rolls: true}, nil, "paused-at"},
		{"the end", during, Write{EndsPause: true}, []string{`{"op":"remove",` + path}, "/spec/template"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			patch := patchFor(t, deployments, pausing(t, test.annotations), test.write)
			for _, want := range test.want {
				if !strings.Contains(string(patch.Body), want) {
					t.Errorf("got %s\nwant %s in it", patch.Body, want)
				}
			}
			if strings.Contains(string(patch.Body), test.without) {
				t.Errorf("got %s\nwant no %s in it", patch.Body, test.without)
			}
			if strings.Contains(string(patch.Body), "/spec/paused") {
				t.Errorf("it writes spec.paused: %s", patch.Body)
			}
		})
	}
}

func FuzzReadPause(f *testing.F) {
	f.Add("5m", "2026-03-14T15:09:26Z")
	f.Add("1h30m1.5s", "2026-03-14T15:09:30+02:00")
	f.Add("-1s", "9999-12-31T23:59:59Z")
	f.Add("2562047h47m16.854775807s", "0000-01-01T00:00:00Z")
	f.Add("5", "yesterday")
	f.Fuzz(func(t *testing.T, period, begun string) {
		w := pausing(t, map[string]string{pausePeriodKey: period, pausedAtKey: begun})
		if w.Pause.Period < 0 || (w.Pause.Period == 0) != (len(w.Problems) == 1) {
			t.Errorf("a period of %s, with the problems %v", w.Pause.Period, w.Problems)
		}
		for _, now := range []time.Time{pausedAt, w.Pause.Begun, w.Pause.Begun.Add(-clockTolerance), w.Pause.Begun.Add(w.Pause.Period)} {
			end, begins := w.Pause.Of(time.Time{}, now)
			if !begins && end.After(now) && end.After(now.Add(w.Pause.Period).Add(clockTolerance)) {
				t.Errorf("at %s it is paused until %s, for a period of %s", now, end, w.Pause.Period)
			}
		}
		for _, write := range []Write{{PausedAt: pausedAt}, {EndsPause: true}} {
			if _, err := deployments.Patch(w, write); err != nil {
				t.Error(err)
			}
		}
	})
}
