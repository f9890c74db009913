package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
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
	const db, tls, reloader = "STAKATER_DB_SECRET", "STAKATER_TLS_SECRET", "Reloader"
	newer := plan.PodsNewer.Sentence()
	const noDecision = "no decision: the workload does not opt in, or the change is none to Keyturn"
	marked := writtenBy("web", reloader, 0, marksDB, "")
	for _, tt := range []struct {
		name   string
		object runtime.Object
		// decided are the reasons of Keyturn's decisions, in order, with the message unless that is "said".
		decided []string
		want    string
	}{
		{
			"both, with Reloader's variable", writtenBy("web", reloader, 0, "", db),
			[]string{"up-to-date: " + newer},
			"both  shop  deployment/web  secret/db  up-to-date; " + newer,
		},
		{
			"both, although the reason had another name", writtenBy("web", reloader, 0, "", db),
			[]string{"pods-newer: " + newer},
			"both  shop  deployment/web  secret/db  up-to-date; " + newer,
		},
		{
			"both, with Reloader's annotation, although it came later", writtenBy("web", reloader, time.Minute, marksDB, ""),
			[]string{"dry-run"},
			"both  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			"both, although a later change was not for the pods", marked,
			[]string{"dry-run", "keys-not-consumed"},
			"both  shop  deployment/web  secret/db  dry-run; said",
		},
		{"Keyturn only", deploymentOf("web", nil), []string{"dry-run"}, "keyturn only  shop  deployment/web  secret/db  dry-run; said"},
		{
			"Keyturn only, because Reloader rolled before the change", writtenBy("web", reloader, -time.Minute, "", db),
			[]string{"dry-run"},
			"keyturn only  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			"Keyturn only, because another manager wrote the marks", writtenBy("web", "keyturn", 0, marksDB, ""),
			[]string{"dry-run"},
			"keyturn only  shop  deployment/web  secret/db  dry-run; said",
		},
		{
			"Reloader only, with Keyturn's reason", marked,
			[]string{"keys-not-consumed"},
			"reloader only  shop  deployment/web  secret/db  keys-not-consumed; said",
		},
		{"Reloader only, without a decision", writtenBy("web", reloader, 0, "", db), nil, "reloader only  shop  deployment/web  secret/db  " + noDecision},
		{
			"it is unclear, because Reloader names only the last", writtenBy("web", reloader, 0, marksTLS, ""),
			[]string{"dry-run"},
			"reloader only  shop  deployment/web  secret/tls  " + noDecision + "\n" +
				"unclear  shop  deployment/web  secret/db  dry-run; said; Reloader has rolled it for secret/tls since, and names no other source",
		},
		{
			"it is unclear of a CronJob", &batchv1.CronJob{ObjectMeta: deploymentOf("web", nil).ObjectMeta},
			[]string{"dry-run"},
			"unclear  shop  cronjob/web  secret/db  dry-run; said; Reloader starts a Job, and leaves no mark on the CronJob",
		},
		{
			"it is unclear of what Reloader restarts, because it leaves no mark", writtenBy("web", reloader, 0, "", ""),
			[]string{"dry-run"},
			"unclear  shop  deployment/web  secret/db  dry-run; said; Reloader has written it since, and leaves no mark on what it restarts",
		},
		{
			"both, of a Job that Reloader has made anew", &batchv1.Job{ObjectMeta: marked.ObjectMeta, Spec: batchv1.JobSpec{Template: marked.Spec.Template}},
			[]string{"dry-run"},
			"both  shop  job/web  secret/db  dry-run; said",
		},
		{
			"both, with Reloader's variable, and a marker from a time when Reloader had the other strategy", writtenBy("web", reloader, 0, marksApp, db),
			[]string{"dry-run"},
			"both  shop  deployment/web  secret/db  dry-run; said",
		},
		{"neither", deploymentOf("web", nil), []string{"up-to-date: " + plan.SameContent.Sentence()}, ""},
		{"neither, of a variable whose source has not changed", writtenBy("web", reloader, 0, "", tls), nil, ""},
		{"neither of late", writtenBy("web", reloader, -48*time.Hour, marksTLS, ""), nil, ""},
		{"neither, with a marker of another's", writtenBy("web", reloader, 0, `{"type":"SECRET","name":"../x"}`, ""), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := natstest.Buses(t, "demo")[0]
			publish(t, b, changeOfDB())
			kind := "deployment"
			switch tt.object.(type) {
			case *batchv1.CronJob:
				kind = "cronjob"
			case *batchv1.Job:
				kind = "job"
			}
			for i, reason := range tt.decided {
				reason, message, found := strings.Cut(reason, ": ")
				if !found {
					message = "said"
				}
				outcome := outcomeOf("web", events.VerbSkipped, reason, message, historyNow.Add(time.Duration(1+i)*time.Second))
				outcome.Workload.Kind = kind
				publishOutcomes(t, b, outcome)
			}
			want := tt.want
			if want != "" {
				want += "\n"
			}
			testkit.WantEqual(t, "rows", want, compared(t, b, tt.object))
		})
	}
}

// compared returns the rows of a comparison, with exactly two spaces between columns.
func compared(t *testing.T, b *bus.Bus, objects ...runtime.Object) string {
	t.Helper()
	options := CompareOptions{Cluster: "demo", Jobs: true, Since: historyNow.Add(-24 * time.Hour), Clients: workload.Clients{
		Typed: fake.NewClientset(objects...), Dynamic: customClient(),
	}}
	var out bytes.Buffer
	natstest.Publish(t, func() error {
		out.Reset()
		return Compare(t.Context(), options, &b.Reader, &out)
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
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	publishOutcomes(t, b, outcomeOf("web", events.VerbSkipped, "dry-run", "", historyNow.Add(time.Second)))
	same, differs := writtenBy("web", "Reloader", 0, marksDB, ""), writtenBy("zoo", "Reloader", 0, marksDB, "")
	options := CompareOptions{Cluster: "demo", Clients: workload.Clients{Typed: fake.NewClientset(same, differs), Dynamic: customClient()}}
	var out bytes.Buffer
	natstest.Publish(t, func() error {
		out.Reset()
		return Compare(t.Context(), options, &b.Reader, &out)
	})
	want := `ROLLED BY      NAMESPACE  WORKLOAD        SOURCE     WHY
reloader only  shop       deployment/zoo  secret/db  no decision: the workload does not opt in, or the change is none to Keyturn
both           shop       deployment/web  secret/db  dry-run

both: 1, keyturn only: 0, reloader only: 1, unclear: 0
`
	testkit.WantEqual(t, "output", want, out.String())
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
