package workload

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// ownedSet is a StatefulSet that reads a Secret and is controlled by the widget web.
func ownedSet(secret string, annotations map[string]string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "widget-web", Namespace: "shop", UID: "uid-set", ResourceVersion: "20", Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.org/v1beta1", Kind: "Widget", Name: "web", UID: "uid-web", Controller: new(true)}},
		},
		Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}},
		}}}}},
		Status: appsv1.StatefulSetStatus{UpdatedReplicas: 1, ReadyReplicas: 1, Replicas: 1, AvailableReplicas: 1},
	}
}

func TestAWorkloadIsRolledThroughItsController(t *testing.T) {
	widget := targetKind(t, "  reads: [{kind: secret, path: 'spec.secrets[*]'}]\n"+annotates+"  status: {owned: true}\n")
	reading := Reading{Owners: Kinds{widget}.Owners()}
	const rollOn = AnnotationRollOn
	tests := []struct {
		name         string
		owner, owned map[string]string
		// spec and pods say whether a change of the Secret of the spec, and of that of the pods, rolls the owner.
		spec, pods bool
		// all says it with --roll-all.
		all [2]bool
	}{
		{"the owner asks", map[string]string{rollOn: "auto"}, nil, true, true, [2]bool{true, true}},
		{"what it owns asks", nil, map[string]string{rollOn: "auto"}, true, true, [2]bool{true, true}},
		{"the owner asks for nothing", map[string]string{rollOn: "none"}, map[string]string{rollOn: "auto"}, false, false, [2]bool{false, false}},
		{"what it owns asks for nothing", map[string]string{rollOn: "auto"}, map[string]string{rollOn: "none"}, true, false, [2]bool{true, false}},
		{"what it owns asks for nothing, the owner is silent", nil, map[string]string{rollOn: "none"}, false, false, [2]bool{true, false}},
	}
	for _, tt := range tests {
		for all, rolls := range map[bool][2]bool{false: {tt.spec, tt.pods}, true: tt.all} {
			t.Run(fmt.Sprintf("%s, --roll-all=%t", tt.name, all), func(t *testing.T) {
				reading := Reading{All: all, Owners: reading.Owners}
				object := widgetOf("web", map[string]any{"secrets": []any{"spec"}}, nil)
				object.SetAnnotations(tt.owner)
				owner := readAs(t, widget, object, reading)
				owned := readAs(t, statefulSets, ownedSet("pods", tt.owned), reading)
				if owned.Runs != owner.Key() || !owned.OptIn.Empty() {
					t.Fatalf("what is owned: got %v of %v, want that it is not rolled itself", owned.OptIn, owned.Runs)
				}
				joined := owner.RunBy(owned)
				for i, name := range []string{"spec", "pods"} {
					source := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name}
					if got := joined.wants(source); got.Wanted() != rolls[i] {
						t.Errorf("a change of secret/%s: got %s, want %t", name, got.Reason, rolls[i])
					}
				}
				if alone := joined.RunBy(); len(alone.Refs) != 1 || alone.IsRun() {
					t.Errorf("without what it owned: got the references %v, want its own", alone.Refs)
				}
			})
		}
	}
	other := ownedSet("pods", nil)
	other.OwnerReferences[0].APIVersion = "other.example.org/v1"
	if w, _ := Read(statefulSets, other, reading); w.Runs != (Key{}) {
		t.Errorf("a controller of another group: got that it is rolled through %v", w.Runs)
	}
	if w := readAs(t, jobs, &batchv1.Job{ObjectMeta: ownedSet("db", nil).ObjectMeta}, reading); w.Owner != (Key{}) || w.Runs != (Key{}) {
		t.Errorf("a Job, which is no workload of the pods of a target: got that it is rolled through %v", w.Runs)
	}
}

func TestATargetIsCompleteWhenWhatItOwnsHasTheChange(t *testing.T) {
	widget := targetKind(t, annotates+"  status: {owned: true}\n")
	reading := Reading{Owners: Kinds{widget}.Owners()}
	object := widgetOf("web", map[string]any{}, nil)
	set := ownedSet("db", nil)
	owned, _ := Read(statefulSets, set, reading)
	before := readAs(t, widget, object, Reading{}).RunBy(owned)
	if before.Progress.State != Complete || before.Progress.Pods != 2 || before.ServingSince == "" {
		t.Errorf("before any roll: got %+v, want complete", before.Progress)
	}
	p := patchFor(t, widget, before, roll("1"))
	rolled := readAs(t, widget, patched(t, object, p), Reading{})
	if got := rolled.RunBy(); got.Progress.State != Progressing || got.ServingSince != "" {
		t.Errorf("before anything that it owns is known: got %+v, want that it goes on", got.Progress)
	}
	if got := rolled.RunBy(owned); got.Progress.State != Progressing || got.Progress.Done != nothingDone || got.ServingSince != "" {
		t.Errorf("before the operator has copied the annotations: got %+v, want that it goes on", got.Progress)
	}
	set.Spec.Template.Annotations = map[string]string{annotationRevision: p.Revision}
	set.Status.UpdatedReplicas = 0
	owned, _ = Read(statefulSets, set, reading)
	if got := rolled.RunBy(owned); got.Progress.State != Progressing || got.Progress.Message != "0 of 1 pods are new" {
		t.Errorf("while the pods are replaced: got %+v, want that it goes on", got.Progress)
	}
	set.Status.UpdatedReplicas = 1
	owned, _ = Read(statefulSets, set, reading)
	if got := rolled.RunBy(owned); got.Progress.State != Complete || got.ServingSince == "" {
		t.Errorf("with new pods: got %+v, want complete", got.Progress)
	}
}

func TestATargetThatWaitsForPeopleDoesSoWithWhatItOwns(t *testing.T) {
	widget := targetKind(t, annotates+"  status: {owned: true, waiting: [{path: spec.paused, equals: 'true'}]}\n")
	reading := Reading{Owners: Kinds{widget}.Owners()}
	object := widgetOf("web", map[string]any{"paused": true}, nil)
	p := patchFor(t, widget, readAs(t, widget, object, Reading{}), roll("1"))
	paused := readAs(t, widget, patched(t, object, p), Reading{})
	set := ownedSet("db", nil)
	owned, _ := Read(statefulSets, set, reading)
	if got := paused.RunBy(owned).Progress; got.State != Waiting || got.Message != `spec.paused is "true"` {
		t.Errorf("a target that is paused, of a StatefulSet without the change: got %+v, want that it waits", got)
	}
	set.Spec.Template.Annotations = map[string]string{annotationRevision: p.Revision}
	owned, _ = Read(statefulSets, set, reading)
	owned.Progress.State = Failed
	if got := paused.RunBy(owned).Progress; got.State != Failed {
		t.Errorf("a target that is paused, of a StatefulSet that has failed: got %+v, want that it has failed", got)
	}
}

// Otherwise, nothing would be known of what it owns, and its rollout would never end.
func TestATargetThatMayOwnWhatIsNotWatchedIsCompleteWithoutIt(t *testing.T) {
	widget := targetKind(t, annotates+"  status: {owned: true}\n")
	object := widgetOf("web", nil, nil)
	p := patchFor(t, widget, readAs(t, widget, object, Reading{}), roll("1"))
	rolled := patched(t, object, p)
	kinds, err := BuiltIn().Only([]string{"deployment", "daemonset"})
	testkit.Must(t, err)
	for _, tt := range []struct {
		name  string
		kinds Kinds
		want  State
	}{
		{"all kinds are watched", append(BuiltIn(), widget), Progressing},
		{"one is not", append(kinds, widget), Complete},
	} {
		w, ok := Read(widget, rolled, Reading{Owners: tt.kinds.Owners(), Unwatched: tt.kinds.Unwatched()})
		if !ok || w.Progress.State != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, w.Progress, tt.want)
		}
	}
}
