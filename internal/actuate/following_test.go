package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// rolledOut returns the outcome of a rollout of a workload that has begun.
func rolledOut(w *workload.Workload, revision string, generation int64) events.Outcome {
	return events.Outcome{
		Verb: events.VerbStarted, Workload: w.ID, ResourceVersion: w.Version, Revision: revision, Generation: generation, StartedAt: written,
		Sources: []events.OutcomeSource{{Source: "secret/db"}},
	}
}

func TestARolloutIsFollowedToItsEnd(t *testing.T) {
	at := func(revision string, generation int64, state workload.State) *workload.Workload {
		return workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
			w.Revision, w.Generation, w.Progress = revision, generation, workload.Progress{State: state, Message: "m", Pods: 1}
		})
	}
	aborted := at("r1", 2, workload.Failed)
	aborted.Progress.Aborted = true
	other, _ := workload.Read(deployments, webDeployment("50", rollOn("auto")), workload.Reading{})
	other.Revision, other.Generation = "r2", 3
	restored := at("r0", 1, workload.Complete)
	restored.Version = "70"
	successor := at("r1", 2, workload.Complete)
	successor.ID.UID = "another"
	tests := []struct {
		name   string
		state  *workload.Workload // nil: it is gone
		verb   events.Verb        // empty: it goes on
		reason string
	}{
		{"a state from before the patch says nothing", at("r0", 1, workload.Complete), "", ""},
		{"a later state is from before the patch, as after a restore of etcd", restored, events.VerbSkipped, "superseded"},
		{"all pods are new, and the generation has gone back", at("r1", 1, workload.Complete), events.VerbCompleted, "rolled-out"},
		{"pods are still replaced", at("r1", 2, workload.Progressing), "", ""},
		{"someone has paused it", at("r1", 2, workload.Waiting), "", ""},
		{"all pods are new", at("r1", 2, workload.Complete), events.VerbCompleted, "rolled-out"},
		{"the controller has given up", at("r1", 2, workload.Failed), events.VerbFailed, "deadline-exceeded"},
		{"the rollout was aborted", aborted, events.VerbFailed, "aborted"},
		{"someone else has changed the template", other, events.VerbSkipped, "superseded"},
		{"someone else has restored the template of before", at("", 3, workload.Complete), events.VerbFailed, "reverted"},
		{"the workload is gone", nil, events.VerbSkipped, "workload-gone"},
		{"the workload has a successor", successor, events.VerbSkipped, "workload-gone"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := at("r1", 2, workload.Progressing)
			f := followingOf(testOptions(), indexOf(w))
			f.begin(t.Context(), rolledOut(w, "r1", 2))
			end, ended := f.review(w.Key(), test.state, 0)
			if ended != (test.verb != "") || end.outcome.Verb != test.verb || end.outcome.Reason != test.reason {
				t.Errorf("ended: %t, as %s, %s, want %s, %s", ended, end.outcome.Verb, end.outcome.Reason, test.verb, test.reason)
			}
			if f.follows(w.Key()) == ended || f.has(w.Key(), db) == ended {
				t.Errorf("it is followed: %t, after it ended: %t", f.follows(w.Key()), ended)
			}
		})
	}
}

func TestALaterRolloutSupersedesTheOneInProgress(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Revision = "r2" })
	f := followingOf(testOptions(), indexOf(w))
	f.begin(t.Context(), rolledOut(w, "r1", 2))
	if !f.unreported(w) {
		t.Error("the revision r2 counts as reported before it is")
	}
	if _, superseded := f.supersede(rolledOut(w, "r1", 2)); superseded {
		t.Error("a rollout supersedes itself")
	}
	end, superseded := f.supersede(rolledOut(w, "r2", 3))
	if !superseded || end.outcome.Verb != events.VerbSkipped || end.outcome.Reason != "superseded" {
		t.Errorf("superseded: %t, as %s, %s", superseded, end.outcome.Verb, end.outcome.Reason)
	}
	f.begin(t.Context(), rolledOut(w, "r2", 3))
	if f.unreported(w) {
		t.Error("the revision r2 counts as not reported")
	}
}

func TestARolloutThatTakesTooLongEnds(t *testing.T) {
	options := testOptions()
	now := written
	options.Now = func() time.Time { return now }
	slow := workloadOf(t, "auto", wholeDB, named("slow", func(w *workload.Workload) {
		w.Revision, w.Generation, w.Progress.Pods = "r1", 2, 1
	}))
	paused := workloadOf(t, "auto", wholeDB, named("paused", func(w *workload.Workload) {
		w.Progress = workload.Progress{State: workload.Waiting, Pods: 1}
	}))
	f := followingOf(options, indexOf(slow, paused))
	f.begin(t.Context(), rolledOut(slow, "r1", 2))
	f.begin(t.Context(), rolledOut(paused, "r1", 2))
	if !f.replaces(slow.Key()) || f.replaces(paused.Key()) {
		t.Error("the one that is paused replaces pods, or the other one does not")
	}
	now = written.Add(options.RolloutTimeout - time.Second)
	if ended := f.overdue(); len(ended) != 0 {
		t.Errorf("%d end before their time", len(ended))
	}
	now = written.Add(options.RolloutTimeout)
	ended := f.overdue()
	if len(ended) != 1 || ended[0].outcome.Workload.Name != "slow" || ended[0].outcome.Reason != "timed-out" || ended[0].took != options.RolloutTimeout {
		t.Errorf("got %+v, want the end of slow", ended)
	}
}

func TestARolloutThatIsNoLongerWatchedDoesNotEndAsDeleted(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	argo := *w
	argo.ID.Kind = "rollout"
	for _, tt := range []struct {
		name    string
		of      *workload.Workload
		options func(*Options)
		want    string
	}{
		{"a workload that is gone", w, func(*Options) {}, "workload-gone"},
		{"a kind that is ignored now", w, func(o *Options) { o.IgnoreWorkloadKinds = []string{"deployments"} }, "unwatched"},
		{"a namespace that is left out now", w, func(o *Options) { o.Namespaces = []string{"another"} }, "unwatched"},
		{"a namespace that is ignored now", w, func(o *Options) { o.IgnoreNamespaces = []string{"shop"} }, "unwatched"},
		{"a workload that is gone from a namespace of several", w, func(o *Options) { o.Namespaces = []string{"another", "shop"} }, "workload-gone"},
		{"a Rollout, without --argo-rollouts", &argo, func(*Options) {}, "unwatched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := testOptions()
			tt.options(&options)
			l := loopOf(t, options)
			l.rollouts.following.resume(t.Context(), rolledOut(tt.of, "r1", 2))
			l.rollouts.review(t.Context(), tt.of.Key())
			if len(l.outbox.waiting) != 1 {
				t.Fatalf("%d outcomes are reported, want its end", len(l.outbox.waiting))
			}
			if got := l.outbox.waiting[0].outcome; got.Verb != events.VerbSkipped || got.Reason != tt.want || got.Message == "" {
				t.Errorf("got %s %s (%s), want skipped %s", got.Verb, got.Reason, got.Message, tt.want)
			}
		})
	}
}
