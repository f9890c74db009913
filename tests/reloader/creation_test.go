package reloader

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestCreationsAndDeletionsRollIfTheFlagsSaySo(t *testing.T) {
	t.Parallel()
	named := map[string]string{"secret.reloader.stakater.com/reload": "later"}
	readsNothing := func(*corev1.PodTemplateSpec) {}
	remove := func(r *rig, name string) {
		testkit.Must(r, r.client.CoreV1().Secrets(r.namespace).Delete(r.Context(), name, metav1.DeleteOptions{}))
	}
	t.Run("by default they do not", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.deploy("web", named, readsNothing)
		r.start()
		r.leaves("web", func() { r.secret("later", map[string]string{"password": "one"}) })
		r.rolls("web", func() { r.secret("later", map[string]string{"password": "two"}) })
		r.leaves("web", func() { remove(r, "later") })
	})
	t.Run("with the flags they do", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.secret("earlier", map[string]string{"password": "one"})
		r.deploy("web", named, readsNothing)
		r.deploy("never-rolled", map[string]string{"secret.reloader.stakater.com/reload": "earlier"}, readsNothing)
		r.start("--reload-on-create=true", "--reload-on-delete=true")
		r.rolls("web", func() { r.secret("later", map[string]string{"password": "one"}) })
		created := r.variables("web")["main/STAKATER_LATER_SECRET"]
		r.rolls("web", func() { remove(r, "later") })
		if deleted := r.variables("web")["main/STAKATER_LATER_SECRET"]; len(created) != 40 || len(deleted) != 40 || deleted == created {
			t.Errorf("the variable was %q, and is %q", created, deleted)
		}
		r.rolls("never-rolled", func() { remove(r, "earlier") })
		if found := r.variables("never-rolled"); len(found["main/STAKATER_EARLIER_SECRET"]) != 40 {
			t.Errorf("the variables are %v", found)
		}
	})
}

// The command hears of the creation and the change at once.
func TestAChangeRightAfterTheCreationRolls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	testkit.Must(t, r.program.Suspend())
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.rolls("web", func() {
		r.secret("db", map[string]string{"password": "two"})
		testkit.Must(r, r.program.Resume())
	})
}
