package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestATemplateIsAsOldAsItsFirstAppearance(t *testing.T) {
	read := func(version, image string) *Workload {
		d := webDeployment(version, nil)
		d.Spec.Template.Spec.Containers[0].Image = image
		w, _ := Read(deployments, d, Reading{})
		return w
	}
	type state struct {
		version, image string
		exact          bool
	}
	tests := []struct {
		name   string
		states []state
		want   string
	}{
		{"it was seen in a list", []state{{"10", "a", false}}, ""},
		{"it was seen being written", []state{{"10", "a", false}, {"11", "b", true}}, "11"},
		{"it was changed back", []state{{"9", "a", true}, {"11", "b", true}, {"12", "a", true}}, "9"},
		{"it was changed in a list", []state{{"9", "a", true}, {"11", "b", false}}, ""},
		{"something else was written", []state{{"9", "a", true}, {"11", "a", true}}, "9"},
		{"it was changed back in a list", []state{{"9", "a", true}, {"11", "b", true}, {"12", "a", false}}, "9"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var w *Workload
			for _, s := range test.states {
				w = read(s.version, s.image).After(w, s.exact)
			}
			if w.TemplateVersion != test.want {
				t.Errorf("got %q, want %q", w.TemplateVersion, test.want)
			}
		})
	}
	t.Run("that of a workload of which a job is started replaces no pods", func(t *testing.T) {
		earlier, later := read("10", "a"), read("11", "b")
		later.starts = true
		if got := later.After(earlier.After(nil, true), true).TemplateVersion; got != "10" {
			t.Errorf("got %q, want the version that it was created with", got)
		}
	})
	t.Run("few earlier ones are remembered", func(t *testing.T) {
		var w *Workload
		for i := range 3 * maxTemplates {
			w = read("10", string(rune('a'+i))).After(w, true)
		}
		if len(w.templates) != maxTemplates {
			t.Errorf("%d are remembered, want %d", len(w.templates), maxTemplates)
		}
	})
}

// Reloader sets a variable to a hash of the content. If earlier content comes back, so does the earlier template.
func TestATemplateThatReloaderGoesBackToIsNew(t *testing.T) {
	read := func(version, value, manager string) *Workload {
		d := webDeployment(version, nil)
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STAKATER_DB_SECRET", Value: value}}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Time: &metav1.Time{Time: written}}}
		w, _ := Read(deployments, d, Reading{Reloader: true})
		return w
	}
	for _, test := range []struct{ name, manager, want string }{
		{"Reloader", ReloaderManager, "12"}, {"someone else", "kubectl-rollout", "9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := read("9", "a", ReloaderManager).After(nil, true)
			second := read("11", "b", ReloaderManager).After(first, true)
			if third := read("12", "a", test.manager).After(second, true); third.TemplateVersion != test.want {
				t.Errorf("got %q, want %q", third.TemplateVersion, test.want)
			}
		})
	}
	plain, _ := Read(deployments, webDeployment("9", nil), Reading{Reloader: true})
	if marked := read("9", "a", ReloaderManager); !marked.Reloaded.Equal(written) || !plain.Reloaded.IsZero() {
		t.Errorf("rolled by Reloader at %s, want %s, and never if it was not: %s", marked.Reloaded, written, plain.Reloaded)
	}
}
