package actuate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

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

func TestEveryKindIsReadAlike(t *testing.T) {
	record := map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "u"}}
	text, err := formatRolled(record)
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", Generation: 3, CreationTimestamp: metav1.NewTime(written),
		Annotations: map[string]string{annotationRollOn: "secrets", annotationRolled: text, annotationWave: "-2"},
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationRevision: "r1"}},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}}},
	}
	objects := everyKind(meta, template)
	if len(objects) != len(kinds) {
		t.Fatalf("%d objects for %d kinds", len(objects), len(kinds))
	}
	for _, name := range Kinds() {
		t.Run(name, func(t *testing.T) {
			k, ok := kindNamed(name)
			if !ok {
				t.Fatal("there is no such kind")
			}
			w, ok := readWorkload(k, objects[name], false)
			if !ok {
				t.Fatal("it cannot be read")
			}
			id := events.Workload{Kind: name, Namespace: "shop", Name: "web", UID: "w"}
			if w.id != id || w.version != "50" || w.generation != 3 || !w.created.Equal(written) || w.wave != -2 || w.revision != "r1" {
				t.Errorf("got %+v", w)
			}
			if diff := cmp.Diff(record, w.rolled); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]events.Source{db}, w.sources()); diff != "" {
				t.Errorf("its sources (-want +got):\n%s", diff)
			}
			if decision := plan(w, changeOf(nil), nil); decision.Reason != ReasonChanged {
				t.Errorf("a change of db: got %s", decision.Reason)
			}
			for other, object := range objects {
				if _, ok := readWorkload(k, object, false); ok != (other == name) {
					t.Errorf("a %s is read as one: %t", other, ok)
				}
			}
		})
	}
	if _, ok := kindNamed("pod"); ok {
		t.Error("there is a kind of pods")
	}
}

func TestACronJobRollsNothingThatRuns(t *testing.T) {
	w, _ := readWorkload(cronJobs, everyKind(metav1.ObjectMeta{}, corev1.PodTemplateSpec{})["cronjob"], false)
	if w.progress.state != stateComplete || w.progress.pods != 0 {
		t.Errorf("got state %d with %d pods, want one that is complete at once and takes no place", w.progress.state, w.progress.pods)
	}
}

func TestWhatCannotBeReadOfAWorkloadIsAProblem(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		wave        int
		want        []string
	}{
		{"nothing, where it says nothing", nil, 0, nil},
		{"a wave that is no number", map[string]string{annotationWave: "first"}, 0, []string{`keyturn.dev/wave: item "first": is not a whole number`}},
		{"a wave that is no whole number", map[string]string{annotationWave: "1.5"}, 0, []string{`keyturn.dev/wave: item "1.5": is not a whole number`}},
		{"not a wave that is one", map[string]string{annotationWave: "7"}, 7, nil},
		{"a record is passed over in silence", map[string]string{annotationRolled: "broken"}, 0, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, ok := readWorkload(deployments, webDeployment("50", test.annotations), false)
			if !ok {
				t.Fatal("it cannot be read")
			}
			if diff := cmp.Diff(test.want, lines(w.problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if w.wave != test.wave {
				t.Errorf("wave %d, want %d", w.wave, test.wave)
			}
		})
	}
}

func TestTemplatesAreToldApart(t *testing.T) {
	read := func(mutate func(*appsv1.Deployment)) *workload {
		deployment := webDeployment("50", nil)
		mutate(deployment)
		w, _ := readWorkload(deployments, deployment, false)
		return w
	}
	before := read(func(*appsv1.Deployment) {})
	tests := []struct {
		name   string
		mutate func(*appsv1.Deployment)
		same   bool
	}{
		{"the same one again", func(*appsv1.Deployment) {}, true},
		{"more replicas", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) }, true},
		{"another annotation of the Deployment", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, true},
		{"another status", func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, true},
		{"another annotation of the template", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"a": "b"} }, false},
		{"another image", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if same := read(test.mutate).template == before.template; same != test.same {
				t.Errorf("it is the same template: %t, want %t", same, test.same)
			}
		})
	}
}

func TestAWorkloadIsConcernedByItsOwnNamespaceAlone(t *testing.T) {
	w := workloadOf(t, "auto, secret/named", wholeDB, nil)
	elsewhere := db
	elsewhere.Namespace = "bank"
	if w.reference(db) == nil || w.reference(elsewhere) != nil || w.reference(app) != nil {
		t.Error("it references what it does not, or not what it does")
	}
	named := db
	named.Name = "named"
	if !w.concerns(db) || !w.concerns(named) || w.concerns(elsewhere) || w.concerns(app) {
		t.Error("it is concerned by what is not its own, or not by what is")
	}
	patterns := workloadOf(t, "secret/d*", Reference{}, nil)
	if !patterns.concerns(named) || patterns.concerns(app) {
		t.Error("a pattern may concern every source of its kind, and none of another")
	}
}

func TestATimeThatIsNotKnownMakesNoWorkloadNewer(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload) { w.created = written.Add(time.Hour) })
	if got := plan(w, changeOf(func(c *events.Change) { c.WrittenAt = time.Time{} }), nil).Reason; got != ReasonChanged {
		t.Errorf("got %s, want %s", got, ReasonChanged)
	}
}
