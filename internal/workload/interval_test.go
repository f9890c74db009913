package workload

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{name: "none is asked for", annotations: map[string]string{annotationRolledAt: at}},
		{name: "it was never rolled", annotations: map[string]string{AnnotationMinInterval: "10m"}},
		{
			name: "it has just been rolled", want: 10 * time.Minute,
			annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at},
		},
		{name: "it is over", now: 10 * time.Minute, annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at}},
		{name: "of the flag", flag: time.Hour, want: time.Hour, annotations: map[string]string{annotationRolledAt: at}},
		{
			name: "of the annotation rather than of the flag", flag: time.Hour, want: time.Minute,
			annotations: map[string]string{AnnotationMinInterval: "1m", annotationRolledAt: at},
		},
		{name: "of no time, whatever the flag says", flag: time.Hour, annotations: map[string]string{AnnotationMinInterval: "0s", annotationRolledAt: at}},
		{
			name: "who rolled it has a clock that is a little ahead", now: -clockTolerance, want: 10 * time.Minute,
			annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at},
		},
		{
			name: "it was rolled in the future", now: -clockTolerance - 1,
			annotations: map[string]string{AnnotationMinInterval: "10m", annotationRolledAt: at},
		},
		{
			name: "with a typo that of the flag counts", flag: time.Hour, want: time.Hour, problem: true,
			annotations: map[string]string{AnnotationMinInterval: "10 minutes", annotationRolledAt: at},
		},
		{name: "a negative one is refused", problem: true, annotations: map[string]string{AnnotationMinInterval: "-1m", annotationRolledAt: at}},
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

func TestARollRecordsItsTimeWhereAnIntervalApplies(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", Annotations: map[string]string{AnnotationMinInterval: "10m"}}
	decided := time.Date(2026, 3, 14, 15, 9, 25, 1, time.UTC)
	for _, kind := range BuiltIn() {
		t.Run(kind.Name, func(t *testing.T) {
			f := newFenced(t, kind, everyKind(meta, corev1.PodTemplateSpec{})[kind.Name])
			if err := f.send(f.patchOf(f.read(), "1", Write{RolledAt: decided})); err != nil {
				t.Fatal(err)
			}
			if end, waits := f.read().NextRoll(decided); waits {
				t.Errorf("a patch that only records begins an interval until %s", end)
			}
			if err := f.send(f.patchOf(f.read(), "2", Write{Rolls: true, RolledAt: decided})); err != nil {
				t.Fatal(err)
			}
			if end, _ := f.read().NextRoll(decided); !end.Equal(decided.Truncate(time.Second).Add(time.Second + 10*time.Minute)) {
				t.Errorf("the interval ends at %s", end)
			}
		})
	}
	w, _ := Read(deployments, webDeployment("50", nil), Reading{})
	p, err := deployments.Patch(w, Write{Rolls: true, RolledAt: decided})
	if err != nil || strings.Contains(string(p.Body), annotationRolledAt[len("keyturn.dev/"):]) {
		t.Errorf("without an interval its time is recorded: %s, %v", p.Body, err)
	}
}

func TestTheLastRollIsTheNewestThatIsNoted(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	tests := []struct {
		name              string
		mark, noted, want time.Time
	}{
		{name: "of the mark", mark: now.Add(-time.Minute), noted: now.Add(-time.Hour), want: now.Add(-time.Minute)},
		{name: "of the interval", noted: now.Add(-time.Hour), want: now.Add(-time.Hour)},
		{name: "not one in the future", noted: now.Add(time.Hour)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &Workload{record: record{Last: Last{At: tt.mark}, rolledAt: tt.noted}}
			if got := w.LastRoll(now); !got.Equal(tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
