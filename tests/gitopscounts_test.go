package tests

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// countRolls checks that Keyturn has rolled each application so often, that no roll has failed, and that the pods were newer than so many changes.
func (r *gitopsRig) countRolls(rolls, newer int) {
	r.Helper()
	outcomes := r.outcomes()
	for _, app := range r.apps {
		got := map[string]int{}
		for _, outcome := range outcomes {
			switch {
			case outcome.Workload.Name != app.name || outcome.Verb == events.VerbHeld: // One that waits for its turn.
			case outcome.Verb == events.VerbSkipped:
				got[outcome.Reason]++
			default:
				got[string(outcome.Verb)]++
			}
		}
		want := map[string]int{string(events.VerbStarted): rolls, string(events.VerbCompleted): rolls, "up-to-date": newer}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("%s: outcomes (-want +got):\n%s", app.way, diff)
		}
	}
}

// changeDuringASync changes the Secret while the tools apply a release. A workload is rolled, unless the pods of the release are newer than the change.
func (r *gitopsRig) changeDuringASync() {
	r.Helper()
	rolls := func() map[string]int {
		started := map[string]int{}
		for _, outcome := range r.outcomes() {
			if outcome.Verb == events.VerbStarted {
				started[outcome.Workload.Name]++
			}
		}
		return started
	}
	before, rolled := r.tally(), rolls()
	r.image++
	r.last = r.commit("a release during which the Secret changes")
	for i, app := range r.apps {
		if i == len(r.apps)/2 {
			r.change()
		}
		app.tool.sync(r, app, r.last)
	}
	r.awaitAll()
	r.passFence()
	r.quiet()
	writes, now := r.tally().since(before), rolls()
	changed, err := r.client.CoreV1().Secrets(r.namespace).Get(r.Context(), "db", metav1.GetOptions{})
	testkit.Must(r, err)
	for _, app := range r.apps {
		own, most := now[app.name]-rolled[app.name], 1
		// What a tool replaces it may have read before the roll: it is taken back, and rolled again.
		isReplaced := app.replaces || app.sticks
		if isReplaced {
			most = 2
		}
		if got := int(writes[app.workload()]); got != 1+own || own > most {
			r.Errorf("%s during a change: the pod template was written %d times, %d of them by Keyturn, want once besides at most %d of Keyturn", app.way, got, own, most)
		}
		// What is replaced after its roll has no record for up to a minute. That of a change without a roll is written when nothing else is to be done.
		if !isReplaced {
			r.eventually(app.way+" during a change: the change is recorded", func(context.Context) bool {
				return strings.Contains(r.deployment(app.name).Annotations["keyturn.dev/rolled"], "@"+changed.ResourceVersion+"/")
			})
		}
	}
}

// countJobs checks that each Job was created so often since an offset of the audit log, by anyone, that so many were started of each CronJob, and that
// nothing else is left.
func (r *gitopsRig) countJobs(begin int64, created, started int) {
	r.Helper()
	type counts struct{ Jobs, Created map[string]int }
	want, got := counts{map[string]int{}, map[string]int{}}, counts{map[string]int{}, map[string]int{}}
	for _, app := range r.apps {
		if app.jobs {
			want.Jobs[app.name+"-nightly"], want.Jobs[app.name+"-import"], want.Created[app.name+"-import"] = started, 1, created
		}
	}
	list, err := r.client.BatchV1().Jobs(r.namespace).List(r.Context(), metav1.ListOptions{})
	testkit.Must(r, err)
	for _, job := range list.Items {
		name := job.Name
		if owner := metav1.GetControllerOf(&job); owner != nil {
			name = owner.Name
		}
		got.Jobs[name]++
	}
	for _, entry := range r.audit(begin) {
		// An apply on the server is a patch, which creates what is not there.
		if entry.Resource == "jobs" && entry.Code == http.StatusCreated && want.Created[entry.Name] > 0 {
			got.Created[entry.Name]++
		}
	}
	testkit.WantEqual(r, "Jobs", want, got)
}

// audit returns the requests that may have changed something in the namespace since an offset of the audit log.
func (r *gitopsRig) audit(begin int64) []testbed.AuditEntry {
	r.Helper()
	return slices.DeleteFunc(auditSince(r, begin), func(entry testbed.AuditEntry) bool {
		return entry.Namespace != r.namespace || strings.Contains(entry.URI, "dryRun=All") || slices.Contains([]string{"get", "list", "watch"}, entry.Verb)
	})
}

// writesOfTools returns the requests in which Argo CD and Flux have written something since an offset of the audit log. Events are nothing, and a Job that
// is missing while it is recreated is healed.
func (r *gitopsRig) writesOfTools(begin int64) []string {
	r.Helper()
	var writes []string
	for _, entry := range r.audit(begin) {
		tools := entry.User == testbed.ArgoCDUser || entry.User == testbed.FluxUser
		if tools && entry.Resource != "events" && entry.Resource != "jobs" {
			writes = append(writes, entry.User+" "+entry.Verb+" "+entry.Resource+" "+entry.Name)
		}
	}
	return writes
}
