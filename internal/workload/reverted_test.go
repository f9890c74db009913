package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// entryAt is an entry of a record.
func entryAt(fingerprint, version, uid string) RolledFor {
	return RolledFor{Fingerprint: fingerprint, Version: version, UID: uid}
}

// writtenBy returns the annotation that a patch writes on the workload, and false if it does not write it.
func writtenBy(t *testing.T, p Patch, annotation string) (any, bool) {
	t.Helper()
	operations := operationsIn(t, p)
	for _, o := range operations {
		if o.Op != "test" && o.Path == "/metadata/annotations"+kube.JSONPointer(annotation) {
			return o.Value, true
		}
	}
	return nil, false
}

// revertedDeployment is a workload whose roll for a change of db was reverted.
func revertedDeployment(t *testing.T, mutate func(*appsv1.Deployment)) *Workload {
	t.Helper()
	d := webDeployment("50", rollOn("auto"))
	w, _ := Read(deployments, d, Reading{})
	d.Annotations[annotationReverted] = `{"secret/db":"2:` + w.TemplateID() + `@100/uid"}`
	if mutate != nil {
		mutate(d)
	}
	return readAs(t, deployments, d, Reading{})
}

func TestRevertsAreCountedForOneChangeAndTemplate(t *testing.T) {
	change := RolledFor{Version: "100", UID: "uid"}
	tests := []struct {
		name   string
		mutate func(*appsv1.Deployment)
		change RolledFor
		want   int
	}{
		{"of this change", nil, change, 2},
		{"with Keyturn's annotations on the template", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{annotationRevision: "r1", events.AnnotationCause: "c", events.AnnotationTraceparent: "t"}
		}, change, 2},
		{"not with another template", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" }, change, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := revertedDeployment(t, test.mutate)
			if got := w.Reverts("secret/db", test.change); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if got := w.IsReverted("secret/db", 1); got != (w.Reverts("secret/db", change) > 1) {
				t.Errorf("it counts as reverted: %t", got)
			}
		})
	}
}

func TestTheCountOfRevertsIsKnownAfterItsAnnotationIsRemoved(t *testing.T) {
	record := func(text string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations[annotationRolled] = `{"secret/db":"` + text + `"}` }
	}
	tests := []struct {
		name   string
		mutate func(*appsv1.Deployment)
		want   int
	}{
		{"and the record says that there is none", record(unrolled(RolledFor{Fingerprint: "k1:x"}).String()), 2},
		{"but not once it was rolled for the change", record("x@100/uid"), 0},
		{"but not with another template", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" }, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := webDeployment("60", rollOn("auto"))
			test.mutate(d)
			w, _ := Read(deployments, d, Reading{})
			if got := w.After(revertedDeployment(t, nil), true).Reverts("secret/db", RolledFor{Version: "100", UID: "uid"}); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestARollCountsItsRevertsUntilItIsForAnotherChange(t *testing.T) {
	w := revertedDeployment(t, nil)
	entry := "2:" + w.TemplateID() + "@100/uid"
	tests := []struct {
		name  string
		write Write
		want  any
	}{
		{"repeated", Write{Rolls: true, Rolled: map[string]RolledFor{"secret/db": entryAt("x", "100", "uid")}}, `{"secret/db":"` + entry + `"}`},
		{"for the next change", Write{Rolls: true, Rolled: map[string]RolledFor{"secret/db": entryAt("x", "110", "uid")}}, nil},
		{"reverted again", Write{
			Rolled: w.Unrolled(map[string]RolledFor{"secret/db": entryAt("x", "100", "uid")}, nil), Reverted: w.RevertedAgain(map[string]RolledFor{"secret/db": entryAt("x", "100", "uid")}),
		}, `{"secret/db":"3:` + w.TemplateID() + `@100/uid"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := patchFor(t, deployments, w, test.write)
			got, there := writtenBy(t, p, annotationReverted)
			if diff := cmp.Diff(test.want, got); diff != "" || !there {
				t.Errorf("there: %t (-want +got):\n%s", there, diff)
			}
		})
	}
	plain, _ := Read(deployments, webDeployment("50", rollOn("auto")), Reading{})
	write := Write{Rolls: true, Rolled: map[string]RolledFor{"secret/db": entryAt("x", "100", "uid")}}
	first := patchFor(t, deployments, plain, write)
	again := patchFor(t, deployments, w, write)
	if _, there := writtenBy(t, first, annotationReverted); there || first.Revision == again.Revision {
		t.Errorf("a first roll has the annotation: %t; a repeated one has the revision %s of the first", there, again.Revision)
	}
}

func TestTheRecordIsAsBeforeARollThatWasReverted(t *testing.T) {
	rolled := map[string]RolledFor{"secret/db": entryAt("x", "100", "uid"), "configmap/app": entryAt("y", "90", "u")}
	w := &Workload{record: record{Rolled: map[string]RolledFor{"secret/db": entryAt("x", "100", "uid"), "configmap/app": entryAt("z", "95", "u")}}}
	before := map[string]RolledFor{"secret/db": entryAt("w", "80", "uid")}
	testkit.WantEqual(t, "what was rolled for later is left", before, w.Unrolled(rolled, before))
	if got := w.Unrolled(rolled, nil)["secret/db"]; got.SameChange(rolled["secret/db"]) || got.Fingerprint == "x" {
		t.Errorf("without an entry of before the record has %s", got)
	}
}

func FuzzParseReverted(f *testing.F) {
	f.Add(`{"secret/db":"2:000000000000@100/u"}`)
	f.Add(`{"secret/db":"-1:000000000000@1/u","configmap/app":"+3:@0/u#s","x":"9999999999999999999:000000000000@1/u"}`)
	f.Add(`{"secret/db":"1@1/u","secret/a":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		w := &Workload{Reverted: parseRolled(text)}
		for source, reverted := range w.Reverted {
			if count := w.Reverts(source, reverted); count < 0 {
				t.Errorf("%q was taken back %d times", source, count)
			}
		}
	})
}
