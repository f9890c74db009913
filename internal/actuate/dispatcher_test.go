package actuate

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadThatIsHeldForTwoReasonsIsReportedOnce(t *testing.T) {
	both := func(w *workload.Workload) {
		w.Refs = []workload.Reference{wholeDB, {Kind: events.KindConfigMap, Name: "app"}}
	}
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { both(w); w.Wave = 1 })
	failed := workloadOf(t, "auto", wholeDB, named("failed", func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	}))
	lower := workloadOf(t, "auto", wholeDB, named("lower", both))
	l := loopOf(t, testOptions(), w, failed, lower)
	l.rollouts.peers.add(failed.Key())
	appChange := changeOf(func(c *events.Change) { c.Source = app })
	l.debounce.pend(lower, appChange)
	p := pendingOf(w, changeOf(nil), appChange)
	for range 50 {
		l.dispatcher.act(t.Context(), p, w)
	}
	if len(l.outbox.waiting) != 1 {
		t.Errorf("%d outcomes say that it is held, want 1", len(l.outbox.waiting))
	}
}

// Which of the two limits is reached first depends on other rollouts.
func TestEachLimitThatHoldsAWorkloadIsReportedOnce(t *testing.T) {
	options := testOptions()
	options.MaxRollouts = 3
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Progress.Pods, w.Wave = 1, 1 })
	lower := workloadOf(t, "auto", wholeDB, named("lower", nil))
	own := workloadOf(t, "auto", wholeDB, named("own", func(w *workload.Workload) { w.Progress.Pods = 1 }))
	others := []*workload.Workload{tenantOf(t, "bank", "a", nil), tenantOf(t, "bank", "b", nil)}
	l := loopOf(t, options, w, own, lower, others[0], others[1])
	p := pendingOf(w, changeOf(nil))
	decide := func() {
		l.dispatcher.admission.forget()
		l.dispatcher.act(t.Context(), p, w)
	}
	follow := func(w *workload.Workload) { l.rollouts.following.follow(w.Key(), &rollout{}) }
	follow(own)
	follow(others[0])
	for range 10 {
		decide() // its namespace has its share
		follow(others[1])
		decide() // no slot is free
		l.rollouts.following.unfollow(others[1].Key())
	}
	var got []string
	for _, waiting := range l.outbox.waiting {
		got = append(got, waiting.outcome.Reason)
	}
	want := []string{plan.NamespaceLimit.String(), plan.Limit.String()}
	if !slices.Equal(got, want) {
		t.Errorf("the outcomes say that it waits for %q, want %q", got, want)
	}
	l.debounce.pend(lower, changeOf(nil))
	decide()
	l.debounce.drop(l.debounce.byKey[lower.Key()])
	decide()
	if n := len(l.outbox.waiting); n != len(want)+2 {
		t.Errorf("after it has waited for something else as well, %d outcomes are reported, want %d", n, len(want)+2)
	}
}

func TestAWorkloadThatNoPatchCanBeMadeForFreesWhatWaitsForIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		// slots is --max-rollouts, and wave that of the workload that waits.
		slots, wave int
		waits       plan.Reason
	}{
		{"a higher wave", 0, 1, plan.LowerWave},
		{"the next one for its slot", 1, 0, plan.Limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := testOptions()
			options.MaxRollouts, options.Namespaces = tt.slots, []string{"shop"}
			unknown := workloadOf(t, "auto", wholeDB, named("unknown", func(w *workload.Workload) { w.ID.Kind, w.Progress.Pods = "unheard", 1 }))
			other := workloadOf(t, "auto", wholeDB, named("other", func(w *workload.Workload) { w.Wave, w.Progress.Pods = tt.wave, 1 }))
			l := loopOf(t, options, unknown, other)
			defer func() {
				for range l.patcher.drain() {
				}
			}()
			l.debounce.hold(l.debounce.pend(other, changeOf(nil)), tt.waits)
			p := l.debounce.pend(unknown, changeOf(nil))
			p.seen = unknown
			l.debounce.schedule(p, written)
			l.dispatcher.slotted = true // so that the one that is due comes first
			l.dispatcher.dispatch(t.Context())
			if len(l.debounce.byKey) > 0 || !l.patcher.busy(other.Key()) {
				t.Errorf("%d workloads wait, want none", len(l.debounce.byKey))
			}
		})
	}
}

func TestWhyNoPatchCanBeMadeIsLogged(t *testing.T) {
	var log bytes.Buffer
	options := testOptions()
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.ID.Kind = "unheard" })
	l := loopOf(t, options, w)
	p := l.debounce.pend(w, changeOf(nil))
	p.seen = w
	l.dispatcher.act(t.Context(), p, w)
	for _, want := range []string{"level=ERROR", "workload=unheard/web", "namespace=shop", "is not rolled"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
}

func TestWhatNewerPodsMakeNeedlessWaitsUntilTheyAreThere(t *testing.T) {
	const bad = "app:bad"
	read := func(version, image string, status appsv1.DeploymentStatus) *workload.Workload {
		d := webDeployment(version, rollOn("auto"))
		d.Spec.Template.Spec.Containers[0].Image, d.Status = image, status
		w, _ := workload.Read(deployments, d, workload.Reading{})
		return w
	}
	stuck := appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}
	ready := appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	tests := []struct {
		name string
		then *workload.Workload
		want plan.Reason
	}{
		{"which holds it while they are not", read("120", bad, stuck), plan.PodsStarting},
		{"which is recorded when they are", read("120", bad, ready), plan.PodsNewer},
		{"and it is rolled when they are taken back: the pods of before were never replaced", read("120", "", ready), plan.Changed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := indexOf(read("90", "", ready))
			x.Written(read("110", bad, stuck))
			w := x.Get(test.then.Key())
			p := pendingOf(w, changeOf(nil))
			l := loopOf(t, testOptions())
			if v := l.dispatcher.decide(p, w); v.waits.reason != plan.PodsStarting {
				t.Fatalf("while they start it waits for %q", v.waits.reason)
			}
			x.Written(test.then)
			v := l.dispatcher.decide(p, x.Get(w.Key()))
			if len(v.doing) != 1 || v.doing[0].Reason != test.want || (v.waits.reason != plan.None) != (test.want == plan.PodsStarting) {
				t.Errorf("got %+v, want %s", v, test.want)
			}
		})
	}
}

func TestVersionsThatCannotBeComparedAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	options := testOptions()
	options.DryRun, options.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.TemplateVersion, w.TemplateWritten = "101", written.Add(-time.Hour)
	})
	l := loopOf(t, options, w)
	for range 2 {
		p := pendingOf(w, changeOf(nil))
		l.dispatcher.act(t.Context(), p, w)
	}
	if n := strings.Count(log.String(), "not comparable"); n != 1 {
		t.Errorf("it is logged %d times, want once", n)
	}
}

func TestADryRunReportsWhatWouldWait(t *testing.T) {
	starting := func(w *workload.Workload) { w.TemplateVersion, w.Progress.Pods = "200", 3 }
	aborted := func(w *workload.Workload) { w.Aborted = true }
	onHold := func(c *events.Change) { c.Hold = "tofu apply" }
	for _, tt := range []struct {
		name     string
		workload func(*workload.Workload)
		change   func(*events.Change)
		want     plan.Reason
	}{
		{"pods that are being replaced, which will be newer than the change", starting, nil, plan.PodsNewer},
		{"a rollout that was aborted", aborted, nil, plan.Aborted},
		{"a source on hold", nil, onHold, plan.SourceOnHold},
		{"nothing", nil, nil, plan.DryRun},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := testOptions()
			options.DryRun = true
			w := workloadOf(t, "auto", wholeDB, tt.workload)
			l := loopOf(t, options, w)
			l.dispatcher.act(t.Context(), pendingOf(w, changeOf(tt.change)), w)
			var got []string
			for _, one := range l.outbox.waiting {
				got = append(got, string(one.outcome.Verb)+" "+one.outcome.Reason)
			}
			if diff := cmp.Diff([]string{"skipped " + tt.want.String()}, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}
