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

const (
	marksDB  = `{"type":"SECRET","name":"db","namespace":"shop","hash":"h","containerRefs":["app"],"observedAt":1}`
	marksApp = `{"type":"CONFIGMAP","name":"app","namespace":"shop","observedAt":1}`
	marksTLS = `{"type":"SECRET","name":"tls","namespace":"shop"}`
)

// writtenBy is a Deployment that a field manager has written, some time after the change of changeOfDB, with the annotation and the variable of
// Reloader, unless these are empty.
func writtenBy(name, manager string, after time.Duration, marker, variable string) *appsv1.Deployment {
	d, at := deploymentOf(name, nil), metav1.NewTime(historyNow.Add(after))
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}}
	if marker != "" {
		d.Spec.Template.Annotations = map[string]string{"reloader.stakater.com/last-reloaded-from": marker}
	}
	if variable != "" {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: variable, Value: "hash"}}
	}
	return d
}

func TestCompareSaysWhoRolled(t *testing.T) {
	const (
		db, tls, reloader = "STAKATER_DB_SECRET", "STAKATER_TLS_SECRET", "Reloader"
		web               = "shop  deployment/web  secret/db  "
		noDecision        = "no decision: the workload does not opt in, or the change is none to Keyturn"
	)
	none, marked := deploymentOf("web", nil), writtenBy("web", reloader, 0, marksDB, "")
	last := "reloader only  shop  deployment/web  secret/tls  " + noDecision + "\n" +
		"unclear  " + web + "dry-run; said; Reloader has rolled it for secret/tls since, and names no other source"
	cronJob, job := &batchv1.CronJob{ObjectMeta: none.ObjectMeta}, &batchv1.Job{ObjectMeta: marked.ObjectMeta}
	job.Spec.Template = marked.Spec.Template
	tests := []struct {
		name   string
		object runtime.Object
		// decided are the reasons of Keyturn's decisions, in order, with spaces between them.
		decided, want string
	}{
		{"both, with Reloader's variable", writtenBy("web", reloader, 0, "", db), "pods-newer", "both  " + web + "pods-newer; said"},
		{"both, with the annotation, although it came later", writtenBy("web", reloader, time.Minute, marksDB, ""), "dry-run", "both  " + web + "dry-run; said"},
		{"both, although a later change was not for the pods", marked, "dry-run keys-not-consumed", "both  " + web + "dry-run; said"},
		{"Keyturn only", none, "dry-run", "keyturn only  " + web + "dry-run; said"},
		{"Keyturn only, after Reloader's", writtenBy("web", reloader, -time.Minute, "", db), "dry-run", "keyturn only  " + web + "dry-run; said"},
		{"Keyturn only, with marks of another manager", writtenBy("web", "keyturn", 0, marksDB, ""), "dry-run", "keyturn only  " + web + "dry-run; said"},
		{"Reloader only, with Keyturn's reason", marked, "keys-not-consumed", "reloader only  " + web + "keys-not-consumed; said"},
		{"Reloader only, without a decision", writtenBy("web", reloader, 0, "", db), "", "reloader only  " + web + noDecision},
		{"it is unclear, because Reloader names only the last", writtenBy("web", reloader, 0, marksTLS, ""), "dry-run", last},
		{
			"it is unclear of a CronJob", cronJob, "dry-run",
			"unclear  shop  cronjob/web  secret/db  dry-run; said; Reloader starts a Job, and leaves no mark on the CronJob",
		},
		{
			"it is unclear of what Reloader restarts, because it leaves no mark", writtenBy("web", reloader, 0, "", ""), "dry-run",
			"unclear  " + web + "dry-run; said; Reloader has written it since, and leaves no mark on what it restarts",
		},
		{"both, of a Job that Reloader has made anew", job, "dry-run", "both  shop  job/web  secret/db  dry-run; said"},
		{"both, with a marker of its other strategy", writtenBy("web", reloader, 0, marksApp, db), "dry-run", "both  " + web + "dry-run; said"},
		{"neither, of a variable whose source has not changed", writtenBy("web", reloader, 0, "", tls), "", ""},
		{"neither of late", writtenBy("web", reloader, -48*time.Hour, marksTLS, ""), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bus := natstest.Buses(t, "demo")[0]
			publish(t, bus, changeOfDB())
			for i, reason := range strings.Fields(tt.decided) {
				outcome := outcomeOf("web", events.VerbSkipped, reason, "said", historyNow.Add(time.Duration(1+i)*time.Second))
				switch tt.object.(type) {
				case *batchv1.CronJob:
					outcome.Workload.Kind = "cronjob"
				case *batchv1.Job:
					outcome.Workload.Kind = "job"
				}
				publishOutcomes(t, bus, outcome)
			}
			if diff := cmp.Diff(tt.want, strings.TrimSpace(compared(t, bus, tt.object))); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
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
	publish(t, bus, changeOfDB())
	publishOutcomes(t, bus, outcomeOf("web", events.VerbSkipped, "dry-run", "", historyNow.Add(time.Second)))
	same, differs := writtenBy("web", "Reloader", 0, marksDB, ""), writtenBy("zoo", "Reloader", 0, marksDB, "")
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
