package workload

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestVariablesAreSetInTheTemplateThatWasReadOrNotAtAll(t *testing.T) {
	there := func(s *corev1.PodSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "STAKATER_DB_SECRET", Value: "old"}}
	}
	inSide := func(s *corev1.PodSpec) { s.Containers[1].EnvFrom = []corev1.EnvFromSource{readsAll(db)} }
	tests := []struct {
		name string
		// pods is the pod spec that was read, and meanwhile is what somebody else does after that.
		pods, meanwhile func(*corev1.PodSpec)
		applied         bool
	}{
		{"nobody does anything", nil, func(*corev1.PodSpec) {}, true},
		{"a container is put in front", nil, func(s *corev1.PodSpec) {
			s.Containers = slices.Insert(s.Containers, 0, corev1.Container{Name: "proxy"})
		}, false},
		{"the containers are exchanged", there, func(s *corev1.PodSpec) { slices.Reverse(s.Containers) }, false},
		{"the first variable is added", inSide, func(s *corev1.PodSpec) { s.Containers[1].Env = []corev1.EnvVar{{Name: "B"}} }, false},
		{"the image is changed", there, func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := Read(deployments, withPods(tt.pods), Reading{Reloader: true, Variables: true})
			changed := withPods(tt.pods)
			tt.meanwhile(&changed.Spec.Template.Spec)
			f := newFenced(t, deployments, changed.DeepCopy())
			if err := f.send(patchFor(t, deployments, w, marked(map[events.Source]string{db: "a"}, db))); (err == nil) != tt.applied {
				t.Errorf("the patch is applied: %t, want %t: %v", err == nil, tt.applied, err)
			}
			read, err := f.objects.Get(t.Context(), "web")
			after, ok := read.(*appsv1.Deployment)
			if err != nil || !ok {
				t.Fatal(err)
			}
			got := 0
			for _, c := range after.Spec.Template.Spec.Containers {
				for _, v := range c.Env {
					if v.Name == "STAKATER_DB_SECRET" && len(v.Value) == 40 {
						got++
					}
				}
			}
			if want := map[bool]int{true: 1}[tt.applied]; got != want {
				t.Errorf("%d variables are set, want %d", got, want)
			}
			testkit.WantEqual(t, "of others something is lost", bare(&changed.Spec.Template), bare(&after.Spec.Template), cmpopts.EquateEmpty())
		})
	}
}

func TestARollIsRefusedThatReloaderHasMadeMeanwhile(t *testing.T) {
	variable := func(value string) func(*corev1.PodTemplateSpec) {
		return func(template *corev1.PodTemplateSpec) {
			c := &template.Spec.Containers[0]
			c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "STAKATER_DB_SECRET" })
			c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: "STAKATER_DB_SECRET", Value: value})
		}
	}
	marker := func(text string) func(*corev1.PodTemplateSpec) {
		return func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{AnnotationReloadedFrom: text}
		}
	}
	nothing := func(*corev1.PodTemplateSpec) {}
	tests := []struct {
		name             string
		before, reloaded func(*corev1.PodTemplateSpec)
		applied          bool
	}{
		{"its first variable", nothing, variable("b"), false},
		{"another value of its variable", variable("a"), variable("b"), false},
		{"its first marker", nothing, marker("b"), false},
		{"a variable beside its marker", marker("a"), variable("b"), false},
		{"nothing at all", nothing, nothing, true},
		{"nothing beside an empty variable", variable(""), nothing, true},
	}
	for _, tt := range tests {
		for strategy, reading := range map[string]Reading{"annotations": {Reloader: true}, "env-vars": {Reloader: true, Variables: true}} {
			t.Run(tt.name+", with "+strategy, func(t *testing.T) {
				object := withPods(nil)
				tt.before(&object.Spec.Template)
				w, _ := Read(deployments, object.DeepCopy(), reading)
				p := patchFor(t, deployments, w, marked(map[events.Source]string{db: "a"}, db))
				tt.reloaded(&object.Spec.Template)
				if err := newFenced(t, deployments, object).send(p); (err == nil) != tt.applied {
					t.Errorf("the patch is applied: %t, want %t: %v", err == nil, tt.applied, err)
				}
			})
		}
	}
}

// reloaded returns a template as Reloader leaves it.
func reloaded(d *appsv1.Deployment, hash string) *appsv1.Deployment {
	d.Spec.Template.Annotations = map[string]string{AnnotationReloadedFrom: `{"type":"SECRET","name":"db","hash":"` + hash + `"}`}
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "STAKATER_DB_SECRET", Value: hash}, corev1.EnvVar{Name: "STAKATER_V_SECRETPROVIDERCLASS", Value: hash})
	return d
}

func TestWhatReloaderLeftIsNoPartOfTheTemplate(t *testing.T) {
	for name, reading := range map[string]Reading{"ordinarily": {}, "with --reloader": {Reloader: true}, "with variables": {Reloader: true, Variables: true}} {
		t.Run(name, func(t *testing.T) {
			plain, _ := Read(deployments, withPods(nil), reading)
			left, _ := Read(deployments, reloaded(withPods(nil), "old"), reading)
			other := withPods(nil)
			other.Spec.Template.Spec.Containers[0].Env[0].Value = "2"
			edited, _ := Read(deployments, reloaded(other, "old"), reading)
			if !plain.SameTemplate(left) || plain.TemplateID() != left.TemplateID() || plain.template == left.template {
				t.Error("a template of Reloader is taken for another one")
			}
			if plain.SameTemplate(edited) {
				t.Error("another template is taken for the same")
			}
			if left.Revision != "" || len(left.Rolled) > 0 || len(left.Problems) > 0 {
				t.Errorf("it counts as rolled: %q, %v; problems %v", left.Revision, left.Rolled, left.Problems)
			}
			object := withPods(nil)
			before := object.DeepCopy()
			if Read(deployments, object, reading); !cmp.Equal(before, object) {
				t.Error("reading changes the object")
			}
		})
	}
}

// The names of containers and variables, and what Reloader wrote, are written by others.
func FuzzMarks(f *testing.F) {
	f.Add("app", "STAKATER_DB_SECRET", `{"type":`, true)
	f.Add("a/b~1", "STAKATER_FOO_BAR_SECRET", "\xff", false)
	f.Add("", "READ", "", true)
	f.Add("side", "STAKATER_DB_SECRETPROVIDERCLASS", `{"type":"SECRET","name":"db","namespace":"shop","hash":"h","containerRefs":["app"],"observedAt":1}`, false)
	f.Add("app", "STAKATER__SECRET", `{"containerRefs":[null],"observedAt":1e99}`, true)
	f.Add("proxy", "STAKATER_DB_SECRET", "", true)
	f.Fuzz(func(t *testing.T, container, variable, text string, variables bool) {
		d := withPods(func(s *corev1.PodSpec) {
			s.Containers[1].Name = container
			s.Containers[1].Env = []corev1.EnvVar{{Name: variable, Value: text}, readsKey(db)}
		})
		d.Spec.Template.Annotations = map[string]string{AnnotationReloadedFrom: text}
		w := readAs(t, deployments, d, Reading{Reloader: true, Variables: variables})
		p := patchFor(t, deployments, w, marked(map[events.Source]string{db: "a"}, db))
		if len(operationsOf(t, p)) == 0 {
			t.Error("nothing is written")
		}
		d.Spec.Template.Annotations[AnnotationReloadedFrom] = "another"
		if again, _ := Read(deployments, d, Reading{}); !again.SameTemplate(w) {
			t.Error("what is left of Reloader is read")
		}
	})
}
