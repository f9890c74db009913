package reloader

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestADeploymentRollsAfterWhatItReads(t *testing.T) {
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"colour": "red"})
	r.secret("other", map[string]string{"password": "one"})
	r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) {
		programs.ReadSecret(template, "db")
		programs.ReadConfigMap(template, "app")
	})
	r.start("--reload-strategy", "annotations")

	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	r.rolls("web", func() { r.configMap("app", map[string]string{"colour": "green"}) })
	r.leaves("web", func() {
		r.label("db")
		labels := []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
		if _, err := r.client.CoreV1().ConfigMaps(r.namespace).Patch(r.Context(), "app", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		r.secret("other", map[string]string{"password": "two"})
	})
}
