package tests

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// A GitOps tool that replaces objects, as kubectl replace does, takes away all that is not in the manifest.
func TestAWorkloadThatIsReplacedByItsManifestRollsOnceForTheNextChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	web := r.reading("web", "db", 1, nil)
	r.deploy(web.DeepCopy())
	r.placeFence()
	r.start()
	replace := func() {
		if _, err := r.client.AppsV1().Deployments(r.namespace).Update(r.Context(), web.DeepCopy(), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(value string) func() {
		return func() { r.set(events.KindSecret, "db", "password", value) }
	}
	r.rolls("the Secret changes", once("deployment/web"), change("two"))
	r.rolls("the workload is replaced, which replaces its pods", once("deployment/web"), replace)
	if annotations := r.deployment("web").Spec.Template.Annotations; len(annotations) > 0 {
		t.Errorf("the template is not that of the manifest: it has %v", annotations)
	}
	r.rollsNothing("both programs start once more", func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		r.start()
	})
	r.rolls("the Secret changes again", once("deployment/web"), change("three"))
}
