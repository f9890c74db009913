package reloader

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCreationsAndDeletionsRollIfTheFlagsSaySo(t *testing.T) {
	named := map[string]string{"secret.reloader.stakater.com/reload": "later"}
	readsNothing := func(*corev1.PodTemplateSpec) {}
	remove := func(r *rig) {
		if err := r.client.CoreV1().Secrets(r.namespace).Delete(r.Context(), "later", metav1.DeleteOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	t.Run("by default they do not", func(t *testing.T) {
		r := newRig(t)
		r.deploy("web", named, readsNothing)
		r.start()
		r.leaves("web", func() { r.secret("later", map[string]string{"password": "one"}) })
		r.rolls("web", func() { r.secret("later", map[string]string{"password": "two"}) })
		r.leaves("web", func() { remove(r) })
	})
	t.Run("with the flags they do", func(t *testing.T) {
		r := newRig(t)
		r.deploy("web", named, readsNothing)
		r.start("--reload-on-create=true", "--reload-on-delete=true")
		r.rolls("web", func() { r.secret("later", map[string]string{"password": "one"}) })
		r.rolls("web", func() { remove(r) })
	})
}
