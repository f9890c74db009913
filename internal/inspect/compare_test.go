package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// reloadedBy adds to a Deployment's managedFields a write by a field manager, some time after the change of changeOfDB.
func reloadedBy(d *appsv1.Deployment, manager string, after time.Duration) *appsv1.Deployment {
	at := metav1.NewTime(historyNow.Add(after))
	d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at})
	return d
}

// withVariable adds a variable as Reloader writes it.
func withVariable(d *appsv1.Deployment, name string) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: name, Value: "hash"}}
	return d
}

// withMarker adds the annotation that Reloader writes.
func withMarker(d *appsv1.Deployment, text string) *appsv1.Deployment {
	d.Spec.Template.Annotations = map[string]string{"reloader.stakater.com/last-reloaded-from": text}
	return d
}

const (
	marksDB  = `{"type":"SECRET","name":"db","namespace":"shop","hash":"h","containerRefs":["app"],"observedAt":1}`
	marksApp = `{"type":"CONFIGMAP","name":"app","namespace":"shop","observedAt":1}`
	marksTLS = `{"type":"SECRET","name":"tls","namespace":"shop"}`
)

func TestCompareSaysWhoRolled(t *testing.T) {
	decided := func(reason string) events.Outcome {
		return events.Outcome{Verb: events.VerbSkipped, Reason: reason, Message: "said"}
	}
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	marked := reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "Reloader", 0)
	reloadedJob := &batchv1.Job{ObjectMeta: marked.ObjectMeta, Spec: batchv1.JobSpec{Template: marked.Spec.Template}}
	tests := []struct {
		name    string
		object  runtime.Object
		decided []events.Outcome
		want    string
	}{
		{
			name:   "both, with Reloader's variable",
			object: reloadedBy(withVariable(deploymentOf("web", nil), "STAKATER_DB_SECRET"), "Reloader", 0), decided: []events.Outcome{decided("pods-newer")},
			want: "both  shop  deployment/web  secret/db  pods-newer; said",
		},
		{
			name:   "both, with Reloader's annotation, although it came later",
			object: reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "Reloader", time.Minute), decided: []events.Outcome{decided("dry-run")},
			want: "both  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			name: "both, although a later change was not for the pods", object: reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "Reloader", 0),
			decided: []events.Outcome{decided("dry-run"), decided("keys-not-consumed")},
			want:    "both  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			name: "Keyturn only", object: deploymentOf("web", nil), decided: []events.Outcome{decided("dry-run")},
			want: "keyturn only  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			name:   "Keyturn only, because Reloader rolled before the change",
			object: reloadedBy(withVariable(deploymentOf("web", nil), "STAKATER_DB_SECRET"), "Reloader", -time.Minute), decided: []events.Outcome{decided("dry-run")},
			want: "keyturn only  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			name:   "Keyturn only, because another manager wrote the marks",
			object: reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "keyturn", 0), decided: []events.Outcome{decided("dry-run")},
			want: "keyturn only  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			name: "Reloader only, with Keyturn's reason", object: reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "Reloader", 0),
			decided: []events.Outcome{decided("keys-not-consumed")},
			want:    "reloader only  shop  deployment/web  secret/db  keys-not-consumed; said",
		},
		{
			name: "Reloader only, without a decision", object: reloadedBy(withVariable(deploymentOf("web", nil), "STAKATER_DB_SECRET"), "Reloader", 0),
			want: "reloader only  shop  deployment/web  secret/db  no decision: the workload does not opt in, or the change is none to Keyturn",
		},
		{
			name:   "it is unclear, because Reloader names only the last",
			object: reloadedBy(withMarker(deploymentOf("web", nil), marksTLS), "Reloader", 0), decided: []events.Outcome{decided("dry-run")},
			want: "reloader only  shop  deployment/web  secret/tls  no decision: the workload does not opt in, or the change is none to Keyturn\n" +
				"unclear  shop  deployment/web  secret/db  dry-run; said; Reloader has rolled it for secret/tls since, and names no other source",
		},
		{
			name: "it is unclear of a CronJob", object: cronJob,
			decided: []events.Outcome{{Verb: events.VerbSkipped, Reason: "dry-run", Workload: events.Workload{Kind: "cronjob"}}},
			want:    "unclear  shop  cronjob/web  secret/db  dry-run; Reloader starts a Job, and leaves no mark on the CronJob",
		},
		{
			name: "it is unclear of what Reloader restarts, because it leaves no mark", object: reloadedBy(deploymentOf("web", nil), "Reloader", 0),
			decided: []events.Outcome{decided("dry-run")},
			want:    "unclear  shop  deployment/web  secret/db  dry-run; said; Reloader has written it since, and leaves no mark on what it restarts",
		},
		{
			name: "both, of a Job that Reloader has made anew", object: reloadedJob,
			decided: []events.Outcome{{Verb: events.VerbSkipped, Reason: "dry-run", Workload: events.Workload{Kind: "job"}}},
			want:    "both  shop  job/web  secret/db  dry-run",
		},
		{
			name:    "both, with Reloader's variable, and a marker from a time when Reloader had the other strategy",
			object:  reloadedBy(withMarker(withVariable(deploymentOf("web", nil), "STAKATER_DB_SECRET"), marksApp), "Reloader", 0),
			decided: []events.Outcome{decided("dry-run")}, want: "both  shop  deployment/web  secret/db  dry-run; said",
		},
		{name: "neither", object: deploymentOf("web", nil), decided: []events.Outcome{decided("same-content")}},
		{name: "neither, of a variable whose source has not changed", object: reloadedBy(withVariable(deploymentOf("web", nil), "STAKATER_TLS_SECRET"), "Reloader", 0)},
		{name: "neither of late", object: reloadedBy(withMarker(deploymentOf("web", nil), marksTLS), "Reloader", -48*time.Hour)},
		{name: "neither, with a marker of another's", object: reloadedBy(withMarker(deploymentOf("web", nil), `{"type":"SECRET","name":"../x"}`), "Reloader", 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bus := natstest.Buses(t, "demo")[0]
			change := changeOfDB()
			publish(t, bus, change)
			for i, outcome := range tt.decided {
				publishDecided(t, bus, outcome, change, i)
			}
			got := compared(t, bus, tt.object)
			var want strings.Builder
			for line := range strings.Lines(tt.want) {
				want.WriteString(strings.TrimSpace(line) + "\n")
			}
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// publishDecided publishes an outcome for a workload web and a change.
func publishDecided(t *testing.T, bus *events.Bus, outcome events.Outcome, change events.Change, second int) {
	t.Helper()
	kind := outcome.Workload.Kind
	if kind == "" {
		kind = "deployment"
	}
	outcome.Workload = events.Workload{Kind: kind, Namespace: "shop", Name: "web", UID: "uid-web"}
	outcome.Cluster, outcome.Cause, outcome.ResourceVersion = "demo", change.ID(), "51"
	outcome.Time = historyNow.Add(time.Duration(1+second) * time.Second)
	outcome.Sources = []events.OutcomeSource{{Source: "secret/db", Event: change.ID()}}
	publishOutcomes(t, bus, outcome)
}

// compared returns the rows of a comparison, with exactly two spaces between columns.
func compared(t *testing.T, bus *events.Bus, objects ...runtime.Object) string {
	t.Helper()
	options := CompareOptions{Cluster: "demo", Jobs: true, Since: historyNow.Add(-24 * time.Hour), Clients: workload.Clients{
		Typed: fake.NewClientset(objects...), Dynamic: customClient(),
	}}
	var out bytes.Buffer
	natstest.Publish(t, func() error {
		out.Reset()
		return Compare(t.Context(), options, &bus.Reader, &out)
	})
	table, _, _ := strings.Cut(out.String(), "\n\n")
	var rows strings.Builder
	for line := range strings.Lines(table + "\n") {
		columns := strings.FieldsFunc(strings.ReplaceAll(line, "  ", "\t"), func(c rune) bool { return c == '\t' || c == '\n' })
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if columns[0] != "ROLLED BY" {
			rows.WriteString(strings.Join(columns, "  ") + "\n")
		}
	}
	return rows.String()
}

func TestCompareCountsAndNamesDifferencesFirst(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	change := changeOfDB()
	publish(t, bus, change)
	publishDecided(t, bus, events.Outcome{Verb: events.VerbSkipped, Reason: "dry-run"}, change, 0)
	same := reloadedBy(withMarker(deploymentOf("web", nil), marksDB), "Reloader", 0)
	differs := reloadedBy(withMarker(deploymentOf("zoo", nil), marksDB), "Reloader", 0)
	options := CompareOptions{Cluster: "demo", Clients: workload.Clients{Typed: fake.NewClientset(same, differs), Dynamic: customClient()}}
	var out bytes.Buffer
	natstest.Publish(t, func() error {
		out.Reset()
		return Compare(t.Context(), options, &bus.Reader, &out)
	})
	want := `ROLLED BY      NAMESPACE  WORKLOAD        SOURCE     WHY
reloader only  shop       deployment/zoo  secret/db  no decision: the workload does not opt in, or the change is none to Keyturn
both           shop       deployment/web  secret/db  dry-run

both: 1, keyturn only: 0, reloader only: 1, unclear: 0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func FuzzParseReloadedFrom(f *testing.F) {
	for _, text := range []string{"", marksDB, marksTLS, `{"type":"SECRET","name":1}`, `{"type":"openbao","name":"a/b/c"}`, "[]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		source, _ := parseReloadedFrom(text)
		if strings.ContainsAny(source.Name, " \t\n/\x1b") {
			t.Errorf("got %q, which is printed", source)
		}
	})
}
