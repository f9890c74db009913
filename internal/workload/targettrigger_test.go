package workload

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheTriggerOfATargetIsWrittenWithItsRecord(t *testing.T) {
	const at = "2026-11-23T09:05:01Z"
	tests := []struct {
		name, trigger string
		spec          map[string]any
		// want is the spec after the roll, and annotations are those of the object without what every roll writes.
		want        map[string]any
		annotations map[string]string
	}{
		{
			"annotations, of which nothing is there", "{annotations: spec.pods.metadata.annotations}", nil,
			map[string]any{"pods": map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				annotationRevision: "REVISION", events.AnnotationCause: "secret/db", events.AnnotationTraceparent: "trace",
			}}}},
			nil,
		},
		{"a field with the revision", "{field: spec.taskID, value: revision}", map[string]any{"taskID": "one"}, map[string]any{"taskID": "REVISION"}, nil},
		{
			"a field with a time", "{field: spec.restart.at, value: time}",
			map[string]any{},
			map[string]any{"restart": map[string]any{"at": at}},
			map[string]string{annotationTriggeredAt: at},
		},
		{
			"an annotation with a fixed text", "{field: \"metadata.annotations['example.org/roll']\", text: 'true'}",
			map[string]any{},
			map[string]any{},
			map[string]string{"example.org/roll": "true"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := targetKind(t, readsSecrets+"  trigger: "+tt.trigger+"\n")
			for _, annotated := range []bool{true, false} {
				object, write, want := widgetOf("web", tt.spec, nil), roll("1"), map[string]string{}
				maps.Copy(want, tt.annotations)
				if annotated {
					want[AnnotationRollOn] = "auto"
				} else {
					object.SetAnnotations(nil)
				}
				before := readAs(t, k, object, Reading{})
				p := patchFor(t, k, before, write)
				if again, _ := k.Patch(before, write); string(again.Body) != string(p.Body) {
					t.Error("the patch of one state differs from time to time")
				}
				after := patched(t, object, p)
				w := readAs(t, k, after, Reading{})
				if w.Revision != p.Revision || p.Revision == "" || w.Reverts("secret/db", RolledFor{}) != 0 {
					t.Errorf("revision: got %q, want %q with its record", w.Revision, p.Revision)
				}
				if !before.SameTemplate(w) || before.template == w.template {
					t.Error("the template differs by nothing, or by more than what a roll writes")
				}
				spec := strings.ReplaceAll(text(t, tt.want), "REVISION", p.Revision)
				if got := text(t, after.Object["spec"]); got != spec {
					t.Errorf("spec: got %s, want %s", got, spec)
				}
				annotations := after.GetAnnotations()
				for _, name := range []string{annotationRolled, annotationRevision, events.AnnotationCause, events.AnnotationTraceparent} {
					delete(annotations, name)
				}
				if diff := cmp.Diff(want, annotations); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func text(t testing.TB, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	testkit.Must(t, err)
	return string(encoded)
}

func TestATriggerThatIsTakenBackIsKnown(t *testing.T) {
	const annotation = "metadata.annotations['example.org/at']"
	at := func(value any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			annotations, _, _ := unstructured.NestedMap(o.Object, "metadata", "annotations")
			if annotations["example.org/at"] = value; value == nil {
				delete(annotations, "example.org/at")
			}
			_ = unstructured.SetNestedMap(o.Object, annotations, "metadata", "annotations")
		}
	}
	spec := func(value map[string]any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.Object["spec"] = value }
	}
	tests := []struct {
		name, trigger string
		change        func(*unstructured.Unstructured)
		rolled        bool
	}{
		{"annotations that are removed", "{annotations: spec.pods}", spec(map[string]any{}), false},
		{"what is no time, such as the seconds since 1970", "{field: \"" + annotation + "\", value: time}", at("1767300000"), true},
		{"a fixed text, which the controller removes", "{field: \"" + annotation + "\", text: 'true'}", at(nil), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := targetKind(t, readsSecrets+"  trigger: "+tt.trigger+"\n")
			object := widgetOf("web", map[string]any{}, nil)
			p := patchFor(t, k, readAs(t, k, object, Reading{}), roll("1"))
			after := patched(t, object, p)
			rolled := readAs(t, k, after, Reading{})
			tt.change(after)
			w := readAs(t, k, after, Reading{})
			if got := w.Revision == p.Revision; got != tt.rolled {
				t.Errorf("it has the revision of the roll: got %t, want %t", got, tt.rolled)
			}
			if !rolled.SameTemplate(w) {
				t.Error("the trigger counts as a template of someone else: got another one")
			}
			// It can be rolled again in any state.
			p = patchFor(t, k, w, roll("2"))
			if again := readAs(t, k, patched(t, after, p), Reading{}); again.Revision != p.Revision {
				t.Errorf("rolled again: got the revision %q, want %q", again.Revision, p.Revision)
			}
		})
	}
}

func TestAFixedTextThatIsStillThereIsNotWrittenAgain(t *testing.T) {
	k := targetKind(t, readsSecrets+"  trigger: {field: \"metadata.annotations['example.org/roll']\", text: 'true'}\n")
	object := widgetOf("web", map[string]any{}, nil)
	first := patchFor(t, k, readAs(t, k, object, Reading{}), roll("1"))
	rolled := patched(t, object, first)
	if readAs(t, k, object, Reading{}).IsTriggered() || !readAs(t, k, rolled, Reading{}).IsTriggered() {
		t.Error("it is not said that the text is there, or that it is before")
	}
	again := patchFor(t, k, readAs(t, k, rolled, Reading{}), roll("2"))
	if err := again.apply(rolled, &unstructured.Unstructured{}); !kube.HasChanged(err) {
		t.Error("it was rolled again before the controller has acted: got no error")
	}
}

func TestATriggerThatTheAPIServerDropsIsNotTakenForARoll(t *testing.T) {
	for trigger, dropped := range map[string]string{
		"{field: spec.restart, text: now}":        "spec.restart",
		"{field: spec.restart, value: revision}":  "spec.restart",
		"{annotations: spec.restart.annotations}": "spec.restart.annotations",
	} {
		k := targetKind(t, "  trigger: "+trigger+"\n")
		object := widgetOf("web", map[string]any{}, nil)
		p := patchFor(t, k, readAs(t, k, object, Reading{}), roll("1"))
		after := patched(t, object, p)
		if err := k.Accepted(readAs(t, k, after, Reading{}), p); err != nil {
			t.Errorf("%s: an answer that has it: %v", trigger, err)
		}
		unstructured.RemoveNestedField(after.Object, "spec", "restart")
		err := k.Accepted(readAs(t, k, after, Reading{}), p)
		if !errors.Is(err, ErrStripped) || !strings.Contains(err.Error(), "has no field "+dropped+",") {
			t.Errorf("%s: an answer without it: got %v, want an error that names %s", trigger, err, dropped)
		}
	}
}
