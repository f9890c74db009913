package tests

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestAChangedSecretRollsTheDeploymentThatReadsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.secret("db", map[string]string{"password": "one"})
	web := programs.NewDeployment(r.namespace, "web", 3, map[string]string{"keyturn.dev/roll-on": "auto"})
	programs.ReadSecret(&web.Spec.Template, "db")
	r.deploy(web)
	r.start()

	before := r.generations()["web"]
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the Deployment is rolled and complete", func(context.Context) bool {
		now := r.deployment("web")
		return programs.Revision(&now.Spec.Template) != "" && now.Status.ObservedGeneration == now.Generation &&
			now.Status.UpdatedReplicas == 3 && now.Status.AvailableReplicas == 3 && now.Status.Replicas == 3
	})
	if now := r.generations()["web"]; now != before+1 {
		t.Errorf("generation: got %d, want %d", now, before+1)
	}
}
