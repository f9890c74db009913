package actuate

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAPatchWhoseAnswerWasLostIsFollowed(t *testing.T) {
	b := newRevertBed(t)
	b.loses = true
	b.change()
	if got := b.outcomes(); len(got) != 0 {
		t.Fatalf("got %+v before it is known that the patch was made", got)
	}
	b.loses = false
	b.intake.index.Written(b.read())
	b.act()
	got := b.outcomes()
	if len(got) == 0 || got[0].Verb != events.VerbStarted || got[0].Revision != b.read().Revision {
		t.Errorf("got %+v, want the start of the rollout", got)
	}
	if !b.rollouts.following.follows(b.read().Key()) {
		t.Error("it is not followed")
	}
}

// rolledAt returns a workload as the actuator left it at a time.
func rolledAt(t *testing.T, name string, at time.Time, state workload.State) *workload.Workload {
	t.Helper()
	d := webDeployment("50", rollOn("auto, configmap/app"))
	d.Name, d.UID = name, types.UID("uid-"+name)
	w, _ := workload.Read(deployments, d, workload.Reading{})
	patch, err := deployments.Patch(w, workload.Write{Rolls: true, Rolled: map[string]workload.RolledFor{
		"configmap/app": {Fingerprint: fp("a"), Version: "90", UID: "u"}, "secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	after, err := patched(d, k8stesting.NewPatchAction(resource, "shop", name, patch.Type, patch.Body))
	if err != nil {
		t.Fatal(err)
	}
	rolled, _ := after.(*appsv1.Deployment)
	rolled.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: workload.FieldManager, Time: &metav1.Time{Time: at}}, {Manager: "kubectl", Time: &metav1.Time{Time: written}},
	}
	w, _ = workload.Read(deployments, rolled, workload.Reading{})
	w.Progress = workload.Progress{State: state, Pods: 1}
	return w
}

func TestARolloutThatNoOutcomeIsAboutIsFound(t *testing.T) {
	recently := written.Add(-time.Hour)
	progressing, known := rolledAt(t, "progressing", recently, workload.Progressing), rolledAt(t, "known", recently, workload.Progressing)
	expired := rolledAt(t, "expired", written.Add(-events.CrowdedOutcomeTTL-time.Hour), workload.Failed)
	l := loopOf(t, testOptions(), progressing, known, expired, rolledAt(t, "complete", recently, workload.Complete), workloadOf(t, "auto", wholeDB, nil))
	l.rollouts.following.resume(t.Context(), rolledOut(known, known.Revision, 2))
	stream := resumerOf(testOptions(), busOf(t))
	testkit.Await(t, "it is found", func(ctx context.Context) bool {
		l.rollouts.find(ctx, stream)
		return len(l.outbox.waiting) > 0
	})
	l.rollouts.find(t.Context(), stream)
	if len(l.outbox.waiting) != 1 {
		t.Fatalf("%d outcomes are reported, want 1", len(l.outbox.waiting))
	}
	got := l.outbox.waiting[0].outcome
	if got.Verb != events.VerbStarted || got.Workload != progressing.ID || len(got.Sources) != 1 || got.Sources[0].Source != "secret/db" {
		t.Errorf("got %+v, want the start of a rollout for the newest change", got)
	}
	if _, err := got.Event(); err != nil {
		t.Errorf("it cannot be published: %v", err)
	}
	if !l.rollouts.following.follows(progressing.Key()) {
		t.Error("it is not followed")
	}
	if l.rollouts.following.follows(expired.Key()) {
		t.Error("a workload is taken for being rolled because its last outcome has expired")
	}
}

func TestTheOutcomesOfWhatIsGoneDoNotConcernANewLeader(t *testing.T) {
	w, gone := workloadOf(t, "auto", wholeDB, nil), workloadOf(t, "auto", wholeDB, named("gone", nil))
	l := loopOf(t, testOptions(), w)
	for _, tt := range []struct {
		name string
		of   *workload.Workload
		verb events.Verb
		want bool
	}{
		{"a rollout that has ended", w, events.VerbCompleted, true},
		{"a rollout that has ended of a workload that is gone", gone, events.VerbCompleted, false},
		{"a rollout whose end nobody has reported, of a workload that is gone", gone, events.VerbStarted, true},
	} {
		last := rolledOut(tt.of, "r1", 2)
		last.Verb = tt.verb
		if got := l.rollouts.concerns(last); got != tt.want {
			t.Errorf("%s: concerns returned %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestAWorkloadThatIsGoneIsForgotten(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	gone := workloadOf(t, "auto", wholeDB, named("gone", nil))
	l := loopOf(t, testOptions(), w)
	f := l.rollouts.following
	for _, one := range []*workload.Workload{w, gone} {
		completed := rolledOut(one, "r1", 2)
		completed.Verb = events.VerbCompleted
		f.resume(t.Context(), completed)
	}
	if _, kept := f.reported[gone.Key()]; kept || f.reported[w.Key()].revision != "r1" {
		t.Errorf("what is reported is %v, want that of the workload that there is", f.reported)
	}
	l.intake.index.Forget(w.Key(), w.ID.UID, "")
	l.rollouts.review(t.Context(), w.Key())
	if len(f.reported) > 0 {
		t.Errorf("after it was deleted the reported revisions are %v", f.reported)
	}
}

func TestAChangeThatWasOnlyRecordedIsNoRolloutOfAnEarlierActuator(t *testing.T) {
	w := rolledAt(t, "web", written, workload.Complete)
	l := loopOf(t, testOptions(), w)
	event := eventOf(changeOf(nil))
	event.delivery.Deliveries = 2
	if !mayHaveRolled(event, w) {
		t.Error("what is at its record was not rolled for an event that is delivered again")
	}
	w.Revision = "r-1" // that of an earlier roll
	l.concluder.conclude(t.Context(), event, w, plan.Decision{Reason: plan.AlreadyRolled})
	// The answer to a patch that only recorded another change was lost.
	lost := &pendingChange{change: changeOf(nil), event: eventOf(changeOf(nil)), doubted: true}
	l.concluder.release(t.Context(), w, lost, plan.Decision{Reason: plan.AlreadyRolled})
	for _, one := range l.outbox.waiting {
		if one.outcome.Verb != events.VerbSkipped {
			t.Errorf("got %+v", one.outcome)
		}
	}
}

// TestARolloutWhoseEventWasSupersededIsFound kills an actuator between its patch and the outcome. When another one leads, the
// rollout is complete.
func TestARolloutWhoseEventWasSupersededIsFound(t *testing.T) {
	startedAt := func(w *workload.Workload, at time.Time) events.Outcome {
		outcome := rolledOut(w, "r0", 1)
		outcome.StartedAt = at
		return outcome
	}
	reported := func(w *workload.Workload) events.Outcome { return startedAt(w, written.Add(-2*time.Hour)) }
	told := []events.Verb{events.VerbStarted, events.VerbCompleted}
	for _, tt := range []struct {
		name string
		// last is the version of the event on the stream.
		last string
		// outcome is the last one of the workload on the stream, nil if it has none.
		outcome func(*workload.Workload) events.Outcome
		// undone means that somebody has restored a pod template of an earlier roll.
		undone bool
		// after is when the patch was made, counted from the oldest event on the stream. Zero is long before.
		after time.Duration
		// progressing means that not all pods are of the pod template yet.
		progressing bool
		// private means that the last leader had another stream.
		private bool
		// later is how long after the patch the next leader starts, if that matters.
		later time.Duration
		// restored means that the workload is from a backup, with the record and the times of a roll before that.
		restored bool
		want     []events.Verb
	}{
		{name: "by a later event", last: "110", outcome: reported, want: told},
		{name: "and an event that may be delivered again, or superseded before that", last: "100", outcome: reported, want: told},
		{name: "as the first one of a stream that was made anew", last: "110", after: time.Minute, want: told},
		{name: "unless its outcome may have expired", last: "110", after: time.Minute, later: events.FullOutcomeTTL},
		{name: "unless the stream may have been lost, and the outcome with it", last: "110", after: time.Second},
		{name: "unless the stream was lost, and the outcome with it", last: "110"},
		{name: "unless it is reported", last: "110", outcome: func(w *workload.Workload) events.Outcome { return rolledOut(w, w.Revision, 2) }},
		{name: "unless another leader has told it on a stream of its own", last: "110", outcome: reported, private: true},
		{name: "unless it is an earlier roll that somebody has restored", last: "110", outcome: reported, undone: true},
		{
			name: "unless it is an earlier roll that somebody has restored with its record", last: "110", after: time.Hour,
			outcome: func(w *workload.Workload) events.Outcome { return startedAt(w, w.Patched.Add(time.Second)) },
		},
		{
			name: "nor while its pods come back", last: "110", after: time.Hour,
			outcome: func(w *workload.Workload) events.Outcome { return startedAt(w, w.Patched.Add(time.Second)) }, progressing: true,
		},
		{
			name: "unless the API server has refused another change since", last: "110", after: time.Minute,
			outcome: func(w *workload.Workload) events.Outcome {
				return events.Outcome{Workload: w.ID, Reason: events.ReasonPatchDenied, Time: w.Patched.Add(time.Hour)}
			},
		},
		{name: "unless the workload is from a backup, and its pods start", last: "110", after: time.Minute, progressing: true, restored: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := written.Add(-time.Hour)
			if tt.after > 0 {
				at = time.Now().Add(tt.after)
			}
			w := rolledAt(t, "web", at, workload.Complete)
			if tt.progressing {
				w.Progress.State = workload.Progressing
			}
			if tt.undone {
				w.Revision = "r-1"
			}
			if tt.restored {
				w.Created = w.Patched.Add(time.Minute)
			}
			options := testOptions()
			options.LeaderElect, options.PrivateStream = true, tt.private
			if tt.later > 0 {
				options.Now = func() time.Time { return at.Add(tt.later) }
			}
			l := loopOf(t, options, w)
			bus := busOf(t)
			mustPublish(t, bus, changeOf(func(c *events.Change) { c.ResourceVersion, c.Time = tt.last, written }), 0)
			if tt.outcome != nil {
				ended := tt.outcome(w)
				ended.Verb = events.VerbCompleted
				l.rollouts.following.resume(t.Context(), ended)
			}
			stream := resumerOf(testOptions(), bus)
			testkit.Await(t, "it has found what nobody has reported", func(ctx context.Context) bool {
				l.rollouts.find(ctx, stream)
				return len(l.outbox.waiting) >= len(tt.want) // Fewer if the stream has not answered.
			})
			var got []events.Verb
			for _, r := range l.outbox.waiting {
				got = append(got, r.outcome.Verb)
				if r.outcome.Revision != w.Revision {
					t.Errorf("an outcome is of the revision %s, want %s", r.outcome.Revision, w.Revision)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}
