package workload

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everyKind is one object of each kind, with the metadata and the pod template.
func everyKind(meta metav1.ObjectMeta, template corev1.PodTemplateSpec) map[string]runtime.Object {
	return map[string]runtime.Object{
		"deployment":  &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		"statefulset": &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		"daemonset":   &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		"cronjob": &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
		}},
	}
}

// readAs reads an object that is a workload.
func readAs(t testing.TB, k Kind, object runtime.Object, reading Reading) *Workload {
	t.Helper()
	w, ok := Read(k, object, reading)
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}

// patchFor returns the patch of a write.
func patchFor(t testing.TB, k Kind, w *Workload, write Write) Patch {
	t.Helper()
	p, err := k.Patch(w, write)
	testkit.Must(t, err)
	return p
}

// operationsIn returns the operations of a patch.
func operationsIn(t testing.TB, p Patch) []operation {
	t.Helper()
	var operations []operation
	testkit.Must(t, json.Unmarshal(p.Body, &operations))
	return operations
}

func TestEveryKindIsReadAlike(t *testing.T) {
	record := map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "u"}}
	text := formatRolled(record)
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", Generation: 3, CreationTimestamp: metav1.NewTime(written),
		Annotations: map[string]string{AnnotationRollOn: "secrets", annotationRolled: text, annotationWave: "-2"},
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationRevision: "r1"}},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}}},
	}
	objects := everyKind(meta, template)
	if len(objects) != len(BuiltIn()) {
		t.Fatalf("%d objects for %d kinds", len(objects), len(BuiltIn()))
	}
	for _, name := range BuiltIn().Names() {
		t.Run(name, func(t *testing.T) {
			k, ok := BuiltIn().Named(name)
			if !ok {
				t.Fatal("there is no such kind")
			}
			w := readAs(t, k, objects[name], Reading{})
			id := events.Workload{Kind: name, Namespace: "shop", Name: "web", UID: "w"}
			if w.ID != id || w.Version != "50" || w.Generation != 3 || !w.Created.Equal(written) || w.Wave != -2 || w.Revision != "r1" {
				t.Errorf("got %+v", w)
			}
			testkit.WantEqual(t, "the record", record, w.Rolled)
			testkit.WantEqual(t, "its sources", []events.Source{db}, w.Sources())
			if want := w.OptIn.Wants(db, w.Reference(db), false); want.Reason != byAuto {
				t.Errorf("it wants db for the reason %s, want %s", want.Reason, byAuto)
			}
			for other, object := range objects {
				if _, ok := Read(k, object, Reading{}); ok != (other == name) {
					t.Errorf("a %s is read as one: %t", other, ok)
				}
			}
		})
	}
	if _, ok := BuiltIn().Named("pod"); ok {
		t.Error("there is a kind of pods")
	}
}

func TestAWaveThatIsNoNumberIsAProblem(t *testing.T) {
	w := readAs(t, deployments, webDeployment("50", map[string]string{annotationWave: "first"}), Reading{})
	want := []string{`keyturn.dev/wave: item "first": is not a whole number`}
	if diff := cmp.Diff(want, lines(w.Problems)); diff != "" || w.Wave != 0 {
		t.Errorf("wave %d, problems (-want +got):\n%s", w.Wave, diff)
	}
}

// webDeployment is a Deployment that reads all of the Secret db.
func webDeployment(version string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
		}}}}},
	}
}

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	app     = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string { return "k0a1b2c3d:" + "0000000000000000000000000000000" + letter }

// workloadThat returns a workload in the namespace shop with an annotation and references.
func workloadThat(t *testing.T, annotation string, refs ...Reference) *Workload {
	t.Helper()
	optIn, problems := parseOptIn(rollOn(annotation), nil, Reading{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id := events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "w"}
	return &Workload{object: object{ID: id}, wishes: wishes{OptIn: optIn, Refs: refs}}
}

func TestAWorkloadIsConcernedByItsOwnNamespaceAlone(t *testing.T) {
	w := workloadThat(t, "auto, secret/named", Reference{Kind: events.KindSecret, Name: "db"})
	elsewhere := db
	elsewhere.Namespace = "bank"
	if w.Reference(db) == nil || w.Reference(elsewhere) != nil || w.Reference(app) != nil {
		t.Error("it references what it does not, or not what it does")
	}
	named := db
	named.Name = "named"
	if names := w.naming(); !names(db) || !names(named) || names(elsewhere) || names(app) {
		t.Error("it is concerned by what is not its own, or not by what is")
	}
	patterns := workloadThat(t, "secret/d*")
	if patterns.OptIn.matches(named) || !patterns.OptIn.matches(db) || patterns.OptIn.matches(app) {
		t.Error("a pattern matches what it does not, or not what it does")
	}
}
