package workload

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	pausePeriodKey = "deployment.reloader.stakater.com/pause-period"
	pausedAtKey    = "deployment.reloader.stakater.com/paused-at"
)

var pausedAt = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// pausing reads a Deployment with annotations as Reloader does.
func pausing(t *testing.T, annotations map[string]string) *Workload {
	t.Helper()
	w, ok := Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid", ResourceVersion: "1", Annotations: annotations,
	}}, Reading{Reloader: true})
	if !ok {
		t.Fatal("it is no Deployment")
	}
	return w
}

func TestAPauseEndsAfterItsPeriod(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		now         time.Duration // after pausedAt
		want        time.Duration // zero: there is no pause
		problem     string
	}{
		{name: "it has just begun", annotations: map[string]string{pausePeriodKey: "30s", pausedAtKey: "2026-03-14T15:09:26Z"}, want: 30 * time.Second},
		{name: "it is over", annotations: map[string]string{pausePeriodKey: "30s", pausedAtKey: "2026-03-14T15:09:26Z"}, now: 30 * time.Second},
		{name: "it would begin in the future", now: -clockTolerance - 1, annotations: map[string]string{pausePeriodKey: "30s", pausedAtKey: "2026-03-14T15:09:26Z"}},
		{
			name: "the period is no duration", annotations: map[string]string{pausePeriodKey: "5 minutes"},
			problem: `deployment.reloader.stakater.com/pause-period: "5 minutes" is not a duration of more than zero, such as 30s or 5m`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := pausing(t, test.annotations)
			end, begins := w.Pause.Of(time.Time{}, pausedAt.Add(test.now))
			paused := !begins && pausedAt.Add(test.now).Before(end)
			if want := test.want > 0; paused != want || want && !end.Equal(pausedAt.Add(test.want)) {
				t.Errorf("it ends at %s: %t, want %t after %s", end, paused, want, test.want)
			}
			if problem := strings.Join(lines(w.Problems), ""); problem != test.problem {
				t.Errorf("problems: got %q, want %q", problem, test.problem)
			}
		})
	}
}

func TestChangesAreGatheredInThePauseThatTheyCameInOrBegin(t *testing.T) {
	at := func(after time.Duration) time.Time { return pausedAt.Add(after) }
	tests := []struct {
		name       string
		pause      Pause
		since, now time.Duration // after pausedAt
		want       time.Time     // zero: they are not gathered
		begins     bool
	}{
		{name: "the first", pause: Pause{Period: time.Minute}, since: time.Second, now: 2 * time.Second, want: at(61 * time.Second), begins: true},
		{name: "one within the pause", pause: Pause{time.Minute, pausedAt}, since: 30 * time.Second, now: 31 * time.Second, want: at(time.Minute)},
		{name: "the first after a pause that is over", pause: Pause{time.Minute, pausedAt}, since: 61 * time.Second, now: 62 * time.Second, want: at(121 * time.Second), begins: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			end, begins := test.pause.Of(at(test.since), at(test.now))
			if !end.Equal(test.want) || begins != test.begins {
				t.Errorf("got %s, begins: %t; want %s, %t", end, begins, test.want, test.begins)
			}
		})
	}
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
