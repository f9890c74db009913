package workload

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheNextRollIsAnIntervalAfterTheLast(t *testing.T) {
	const at = "2026-03-14T15:09:26Z"
	tests := []struct {
		name        string
		annotations map[string]string
		flag        time.Duration
		now         time.Duration // after the last roll
		want        time.Duration // zero: at once
		problem     bool
	}{
		{name: "it has just been rolled", want: 10 * time.Minute, annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at}},
		{name: "it is over", now: 10 * time.Minute, annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at}},
		{name: "of the annotation rather than of the flag", flag: time.Hour, want: time.Minute, annotations: map[string]string{AnnotationMinInterval: "1m", annotationRolledAt: at}},
		{name: "of no time, whatever the flag says", flag: time.Hour, annotations: map[string]string{AnnotationMinInterval: "0s", annotationRolledAt: at}},
		{
			name: "with a typo that of the flag counts", flag: time.Hour, want: time.Hour, problem: true,
			annotations: map[string]string{AnnotationMinInterval: "10 minutes", annotationRolledAt: at},
		},
	}
	last, _ := time.Parse(time.RFC3339, at)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, _ := Read(deployments, webDeployment("50", test.annotations), Reading{MinInterval: test.flag})
			end, waits := w.NextRoll(last.Add(test.now))
			if want := test.want > 0; waits != want || waits && !end.Equal(last.Add(test.want)) {
				t.Errorf("it waits: %t, until %s", waits, end)
			}
			if got := len(w.Problems) > 0; got != test.problem {
				t.Errorf("the problems are %v", w.Problems)
			}
		})
	}
}

func TestARollNotesItsTimeAndIsCountedUntilTheHourOfTheFirstIsOver(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", Annotations: map[string]string{AnnotationMinInterval: "10m", AnnotationMaxRollsPerHour: "3"},
	}
	began := time.Date(2026, 3, 14, 15, 9, 25, 1, time.UTC)
	for _, kind := range BuiltIn() {
		t.Run(kind.Name, func(t *testing.T) {
			f := newFenced(t, kind, everyKind(meta, corev1.PodTemplateSpec{})[kind.Name])
			send := func(version string, write Write) {
				t.Helper()
				testkit.Must(t, f.send(f.patchOf(f.read(), version, write)))
			}
			send("1", Write{RolledAt: began})
			if end, waits := f.read().NextRoll(began); waits {
				t.Errorf("a patch that only records begins an interval until %s", end)
			}
			send("2", Write{Rolls: true, RolledAt: began})
			if end, _ := f.read().NextRoll(began); !end.Equal(began.Truncate(time.Second).Add(time.Second + 10*time.Minute)) {
				t.Errorf("the interval ends at %s", end)
			}
			send("3", Write{Rolls: true, RolledAt: began.Add(time.Minute)})
			if got := f.read().stored.text(annotationRolls); got != "2 since 2026-03-14T15:09:26Z" {
				t.Errorf("after two rolls it says %q", got)
			}
			send("4", Write{Rolls: true, RolledAt: began.Add(time.Hour + time.Second)})
			if got := f.read().stored.text(annotationRolls); got != "1 since 2026-03-14T16:09:27Z" {
				t.Errorf("after one in the next hour it says %q", got)
			}
		})
	}
	w, _ := Read(deployments, webDeployment("50", nil), Reading{})
	p := patchFor(t, deployments, w, Write{Rolls: true, RolledAt: began})
	for _, annotation := range []string{annotationRolledAt, annotationRolls} {
		if _, written := writtenBy(t, p, annotation); written {
			t.Errorf("without an interval and a limit %s is written: %s", annotation, p.Body)
		}
	}
}

func TestAWorkloadIsRolledTooOftenWithinAnHour(t *testing.T) {
	const first = "2026-03-14T15:09:26Z"
	rolled := func(count string, others ...string) map[string]string {
		on := map[string]string{annotationRolls: count + " since " + first}
		if len(others) > 0 {
			on[AnnotationMaxRollsPerHour] = others[0]
		}
		return on
	}
	tests := []struct {
		name          string
		annotations   map[string]string
		flag          int
		now           time.Duration // after the first roll
		want, problem bool
	}{
		{name: "without a limit", annotations: rolled("900")},
		{name: "as often", annotations: rolled("3"), flag: 3, want: true},
		{name: "the hour is over", annotations: rolled("3"), flag: 3, now: time.Hour},
		{name: "of its annotation rather than of the flag", annotations: rolled("3", "5"), flag: 3},
		{name: "with a typo that of the flag counts", annotations: rolled("3", "ten"), flag: 3, want: true, problem: true},
		{name: "it was rolled in the future", annotations: rolled("3"), flag: 3, now: -clockTolerance - 1},
	}
	since, _ := time.Parse(time.RFC3339, first)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, _ := Read(deployments, webDeployment("50", test.annotations), Reading{MaxRollsPerHour: test.flag})
			end, said, is := w.TooOften(since.Add(test.now))
			if is != test.want || is && (!end.Equal(since.Add(time.Hour)) || !strings.HasSuffix(said, " since "+first)) {
				t.Errorf("it was rolled too often: %t, until %s: %s", is, end, said)
			}
			if got := len(w.Problems) > 0; got != test.problem {
				t.Errorf("the problems are %v", w.Problems)
			}
		})
	}
}

func TestRollsAreCountedAlthoughSomeoneTakesTheCountAway(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	at := func(version, text string) *Workload {
		on := map[string]string{}
		if text != "" {
			on[annotationRolls] = text
		}
		w, _ := Read(deployments, webDeployment(version, on), Reading{MaxRollsPerHour: 3})
		return w
	}
	const three, two, next = "3 since 2026-03-14T15:09:26Z", "2 since 2026-03-14T15:09:26Z", "1 since 2026-03-14T16:09:26Z"
	for text, want := range map[string]string{"": three, two: three, "x": three, "9 since 2026-03-14T14:00:00Z": three, next: next} {
		w := at("51", text).After(at("50", three), true)
		if got := w.rolls.String(); got != want {
			t.Errorf("with %q it has %s, want %s", text, got, want)
		}
		p, err := deployments.Patch(w, Write{Rolls: true, RolledAt: now.Add(time.Minute)})
		if want == three && (err != nil || !strings.Contains(string(p.Body), "4 since")) {
			t.Errorf("with %q the patch is %s, %v", text, p.Body, err)
		}
	}
	other := at("51", "")
	other.ID.UID = "another"
	if _, _, is := other.After(at("50", three), true).TooOften(now); is {
		t.Error("another workload of the name has its rolls")
	}
}

// It was written by a leader whose clock was ahead, or manually.
func TestRollsOfTheFutureEndWithTheAnnotation(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	at := func(version, text string, written time.Time) *Workload {
		d := webDeployment(version, map[string]string{annotationRolls: text})
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: written}}}
		w, _ := Read(deployments, d, Reading{MaxRollsPerHour: 3})
		return w
	}
	w := at("50", "1 since 2026-03-14T19:09:26Z", now)
	for i := range 10 {
		rolled := now.Add(time.Duration(i) * time.Minute)
		if _, _, is := w.TooOften(rolled); is {
			return
		}
		w = at("5"+string(rune('1'+i)), w.rolls.and(rolled).String(), rolled).After(w, true)
	}
	t.Error("ten rolls in ten minutes, with a limit of three")
}
