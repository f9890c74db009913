package actuate

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// rollOf returns the task for changes of the given sources.
func rollOf(t *testing.T, k workload.Kind, w *workload.Workload, sources ...events.Source) *task {
	t.Helper()
	var decisions []plan.Decision
	p := newPending(w.Key(), written)
	for i, source := range sources {
		change := changeOf(func(c *events.Change) {
			c.Source, c.ResourceVersion, c.ChangedAt = source, fmt.Sprint(100+i), fmt.Sprint(100+i)
			c.Keys = nil
			c.Trace.Parent = fmt.Sprintf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b%d-01", i)
		})
		p.changes[source] = &pendingChange{change: change}
		decisions = append(decisions, decisionOf(w, change, nil))
	}
	r, err := newTask(k, w, decisions, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func referencing(t *testing.T) *workload.Workload {
	return workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db"}, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: events.KindConfigMap, Name: "app"})
		w.Rolled = map[string]workload.RolledFor{
			"secret/gone":   {Fingerprint: fp("1"), Version: "3", UID: "u"},
			"configmap/app": {Fingerprint: fp("2"), Version: "4", UID: "u"},
		}
	})
}

var app = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}

func TestThePatchIsTheSameHoweverItIsMade(t *testing.T) {
	first := rollOf(t, deployments, referencing(t), db)
	if second := rollOf(t, deployments, referencing(t), db); string(first.patch.Body) != string(second.patch.Body) {
		t.Errorf("made again it is another:\n%s\n%s", first.patch.Body, second.patch.Body)
	}
	both := rollOf(t, deployments, referencing(t), db, app)
	turned, err := newTask(deployments, referencing(t), []plan.Decision{both.decisions[1], both.decisions[0]}, both.pending)
	if err != nil {
		t.Fatal(err)
	}
	if string(both.patch.Body) != string(turned.patch.Body) {
		t.Errorf("with the decisions in another order it is another:\n%s\n%s", both.patch.Body, turned.patch.Body)
	}
	if first.patch.Revision == both.patch.Revision {
		t.Error("two records have one revision")
	}
}

func TestThePatchWritesItsOwnAnnotationsAndNothingElse(t *testing.T) {
	for _, k := range workload.BuiltIn() {
		r := rollOf(t, k, referencing(t), db)
		sets, tests, err := operationsOf(r.patch.Body)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		if tests["/metadata/uid"] != "w" {
			t.Errorf("%s: uid: got %q, want that of the workload, as a precondition", k.Name, tests["/metadata/uid"])
		}
		rolled := recordOf(setIn(r.patch.Body, annotationRolled))
		if len(rolled) != 2 || rolled["secret/db"].Version != "100" || rolled["configmap/app"].Version != "4" {
			t.Errorf("%s: got the record %v, want that of secret/db and configmap/app, without secret/gone", k.Name, rolled)
		}
		template := "/spec/template"
		if k.Name == "cronjob" {
			template = "/spec/jobTemplate/spec/template"
		}
		delete(sets, "/metadata/annotations/keyturn.dev~1rolled")
		want := map[string]any{
			template + "/metadata/annotations":                          map[string]any{}, // there are none
			template + "/metadata/annotations/keyturn.dev~1cause":       "secret/db (password)",
			template + "/metadata/annotations/keyturn.dev~1revision":    r.patch.Revision,
			template + "/metadata/annotations/keyturn.dev~1traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b0-01",
		}
		if diff := cmp.Diff(want, sets); diff != "" {
			t.Errorf("%s: what it sets beside the record (-want +got):\n%s", k.Name, diff)
		}
	}
}

func TestARecordAloneLeavesThePodTemplateAlone(t *testing.T) {
	w := referencing(t)
	w.TemplateVersion = "200"
	r := rollOf(t, deployments, w, db)
	if r.rolls || strings.Contains(string(r.patch.Body), "/spec/") {
		t.Errorf("got %s, want a patch of the metadata alone", r.patch.Body)
	}
}

func TestTheCauseNamesAHandfulOfKeys(t *testing.T) {
	decisions := []plan.Decision{
		{Source: app, Reason: plan.PodsNewer},
		{Source: db, Reason: plan.Changed, Keys: []string{"a", "b", "c", "d", "e", "f", "g"}},
	}
	got := describeCause(decisions, map[events.Source]*pendingChange{app: {}, db: {}})
	if want := "secret/db (a, b, c, d, e, 2 more)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheCauseOfManySourcesCountsTheLastOnes(t *testing.T) {
	var decisions []plan.Decision
	changes := make(map[events.Source]*pendingChange)
	for i := range 1000 {
		source := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app-" + strconv.Itoa(1000+i)}
		decisions, changes[source] = append(decisions, plan.Decision{Source: source, Reason: plan.Changed}), &pendingChange{}
	}
	got := describeCause(decisions, changes)
	if len(got) > 2*maxCause || !strings.HasPrefix(got, "configmap/app-1000, ") || !strings.HasSuffix(got, " more") {
		t.Errorf("got %d bytes: %.60q", len(got), got)
	}
}

func TestTheCauseNamesWhatIsBehindASecret(t *testing.T) {
	behind := &events.Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"}
	got := describeCause([]plan.Decision{{Source: db, Reason: plan.Changed}}, map[events.Source]*pendingChange{db: {change: events.Change{Cause: behind}}})
	if want := "secret/db by externalsecret/db for bao/root/secret/shop/db/7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
