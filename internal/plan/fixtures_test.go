package plan

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

// revertedAt returns what makes rolls for the change of db at a version have been undone so many times.
func revertedAt(version string, count int) func(*workload.Workload) {
	return func(w *workload.Workload) {
		w.Reverted = map[string]workload.RolledFor{"secret/db": {Fingerprint: fmt.Sprintf("%d:%s", count, w.TemplateID()), Version: version, UID: "uid"}}
	}
}

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string {
	const digits = "0000000000000000000000000000000"
	return "k0a1b2c3d:" + digits + letter
}

// changeOf is a change of the Secret db at resourceVersion 100: its key password, which has changed before, changed, and its
// key user did not.
func changeOf(mutate func(*events.Change)) events.Change {
	change := events.Change{
		Cluster: "demo", Source: db, Verb: events.VerbChanged, UID: "uid", ResourceVersion: "100", ChangedAt: "100",
		Fingerprint: fp("b"), Previous: fp("a"), Changed: []string{"password"}, WrittenAt: written,
		Keys: map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "100"}, "user": {Fingerprint: fp("3")}},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

var deployments, _ = workload.BuiltIn().Named("deployment")

// webWith is the Deployment web with annotations, an hour older than the change.
func webWith(t *testing.T, annotations map[string]string, reading workload.Reading) *workload.Workload {
	t.Helper()
	w, ok := workload.Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", CreationTimestamp: metav1.NewTime(written.Add(-time.Hour)),
		Annotations: annotations,
	}}, reading)
	if !ok {
		t.Fatal("it is no Deployment")
	}
	w.Progress = workload.Progress{}
	return w
}

// workloadOf is a Deployment that rolls on all that it references, and references db by one key or as a whole.
func workloadOf(t *testing.T, annotation string, ref workload.Reference, mutate func(*workload.Workload)) *workload.Workload {
	t.Helper()
	w := webWith(t, map[string]string{workload.AnnotationRollOn: annotation}, workload.Reading{})
	if len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	if ref.Kind != "" {
		w.Refs = []workload.Reference{ref}
	}
	if mutate != nil {
		mutate(w)
	}
	return w
}

// justCame is what a leader remembers of a change that it has seen come.
var justCame = Memory{Now: written, Since: written}

// decisionOf is the decision about a change that has just come, without a policy. From is that of Memory.
func decisionOf(w *workload.Workload, now events.Change, from *events.Change) Decision {
	memory := justCame
	memory.From = from
	return Decide(w, now, memory, Policy{})
}
