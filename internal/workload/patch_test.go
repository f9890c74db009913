package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// fenced is a workload of one kind at the API server.
type fenced struct {
	*testing.T
	kind    Kind
	objects Objects
}

func newFenced(t *testing.T, kind Kind, object runtime.Object) *fenced {
	t.Helper()
	return &fenced{t, kind, kind.Objects(Clients{Typed: fake.NewClientset(object)}, "shop")}
}

func (f *fenced) read() *Workload {
	f.Helper()
	object, err := f.objects.Get(f.Context(), "web")
	testkit.Must(f, err)
	return readAs(f.T, f.kind, object, Reading{})
}

// patchOf returns the patch that rolls a workload for a change of db.
func (f *fenced) patchOf(w *Workload, version string, write Write) Patch {
	f.Helper()
	write.Rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: version, UID: "u"}}
	return patchFor(f.T, f.kind, w, write)
}

func (f *fenced) send(p Patch) error {
	_, err := f.objects.Patch(f.Context(), "web", p)
	return err
}

func TestAPatchOfAnEarlierRecordChangesNothing(t *testing.T) {
	reading := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}},
	}}}}
	tests := []struct {
		name        string
		annotations map[string]string
		write       Write
	}{
		{"that rolls, of none", rollOn("auto"), Write{Rolls: true}},
		{"that rolls, of no annotations", nil, Write{Rolls: true}},
		{"that records, of none", rollOn("auto"), Write{}},
		{"that records, of an edited one", map[string]string{annotationRolled: "<\"&\\ é\u2028~/>"}, Write{}},
	}
	for _, test := range tests {
		for _, name := range BuiltIn().Names() {
			t.Run(test.name+", at a "+name, func(t *testing.T) {
				meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", Annotations: test.annotations}
				kind, _ := BuiltIn().Named(name)
				f := newFenced(t, kind, everyKind(meta, reading)[name])
				before := f.read()
				testkit.Must(t, f.send(f.patchOf(before, "110", Write{Rolls: true, Traceparent: "t"})))
				after := f.read()
				if err := f.send(f.patchOf(before, "100", test.write)); err == nil {
					t.Errorf("the record is of %s", f.read().Rolled["secret/db"].Version)
				}
				if got := f.read(); got.Rolled["secret/db"].Version != "110" || got.Revision != after.Revision {
					t.Errorf("the record is %v, and the revision %s", got.Rolled, got.Revision)
				}
				if err := f.send(f.patchOf(after, "120", Write{Rolls: true})); err != nil {
					t.Error(err)
				}
				if got := f.read(); got.Rolled["secret/db"].Version != "120" || got.Revision == after.Revision || got.stored.traced {
					t.Errorf("after the next change: the record is %v, and the revision %s; it has the trace of before: %t",
						got.Rolled, got.Revision, got.stored.traced)
				}
			})
		}
	}
}

func TestAPatchOfAnotherWorkloadOfTheNameChangesNothing(t *testing.T) {
	f := newFenced(t, deployments, webDeployment("50", rollOn("auto")))
	other := webDeployment("50", rollOn("auto"))
	other.UID = "other"
	w, _ := Read(deployments, other, Reading{})
	if err := f.send(f.patchOf(w, "100", Write{Rolls: true})); err == nil || len(f.read().Rolled) > 0 {
		t.Errorf("the record is %v", f.read().Rolled)
	}
}

func TestAPatchKeepsTheAnnotationsThatOthersAddMeanwhile(t *testing.T) {
	without := newFenced(t, deployments, webDeployment("50", nil))
	p := without.patchOf(without.read(), "100", Write{Rolls: true})
	annotated := webDeployment("50", rollOn("auto"))
	annotated.Spec.Template.Annotations = map[string]string{"example.org/a": "b"}
	with := newFenced(t, deployments, annotated)
	if err := with.send(p); err == nil {
		t.Error("a patch for a workload without annotations is applied to one that has some")
	}
	if !strings.Contains(string(p.Body), `"path":"/metadata/annotations/keyturn.dev~1rolled"`) {
		t.Errorf("the patch is %s", p.Body)
	}
}

func TestTheSubjectOfARollIsItsChanges(t *testing.T) {
	write := func(source events.Source, rolled RolledFor) Write {
		return Write{Changes: []Change{{Source: source}}, Rolled: map[string]RolledFor{source.String(): rolled}}
	}
	rolled := RolledFor{Fingerprint: "k0000000a:one", Version: "7", UID: "uid"}
	otherKey := RolledFor{Fingerprint: "k0000000b:other", Version: "7", UID: "uid"}
	class := events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	for _, tt := range []struct {
		name string
		a, b Write
		same bool
	}{
		{"the same change under another key", write(db, rolled), write(db, otherKey), true},
		{"the deletion after it", write(db, rolled), write(db, DeletedAfter(rolled)), false},
		{"what changes without a new version", write(class, rolled), write(class, RolledFor{Fingerprint: "k0000000a:two", Version: "7", UID: "uid"}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if same := tt.a.subject() == tt.b.subject(); same != tt.same {
				t.Errorf("got the same subject: %t, want %t", same, tt.same)
			}
		})
	}
}
