package actuate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// readsBoth returns a Deployment that reads db and other.
func readsBoth(name string, on map[string]string) *appsv1.Deployment {
	d := deploymentOf(name, "db", on)
	other := deploymentOf("other", "other", on).Spec.Template.Spec
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, other.Containers...)
	d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, other.Volumes...)
	return d
}

// a reads db and other, and fails when it is rolled for other. b reads db, and is on hold until then.
func TestAFailureHoldsNobodyForAChangeThatTheFailedOneWasReadyWith(t *testing.T) {
	fail := failures["its controller has given up"].fail
	tests := []struct {
		name string
		// first is what happens to the rollout of a for db, and leads says that another actuator leads before the hold is taken off.
		first func(b *bakeBed)
		leads bool
		want  []string
	}{
		{"the rollout for db was complete", func(b *bakeBed) { b.ready("a") }, false, []string{"a", "a", "b"}},
		{"it was superseded before it was", func(*bakeBed) {}, false, []string{"a", "a"}},
		{"it has failed", func(b *bakeBed) { fail(b, "a") }, false, []string{"a", "a"}},
		{"it has failed, and was complete after all", func(b *bakeBed) { fail(b, "a"); b.ready("a") }, false, []string{"a", "a", "b"}},
		{"the next leader does not know", func(b *bakeBed) { b.ready("a") }, true, []string{"a", "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBakeBed(t, readsBoth("a", inWave("0")), deploymentOf("b", "db", inWave("0", "keyturn.dev/hold", "tofu apply")))
			b.options.Canary = false
			b.lead()
			b.change("200")
			tt.first(b)
			b.changeOf("other", "300")
			fail(b, "a")
			if tt.leads {
				b.lead()
				b.change("200")
			}
			b.becomes("b", func(d *appsv1.Deployment) { delete(d.Annotations, "keyturn.dev/hold") })
			b.rolled("when the hold is taken off", tt.want...)
		})
	}
}

// For example, someone sets an image that cannot be pulled after the rollout is complete.
func TestTheNextLeaderTakesNoWorkloadForFailedThatOthersHaveBroken(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0", "keyturn.dev/hold", "tofu apply")))
	b.change("200")
	b.ready("a")
	b.pass(defaultBake)
	b.wantTold("a completed rolled-out")
	b.becomes("a", func(d *appsv1.Deployment) {
		d.Spec.Template.Labels, d.Generation = map[string]string{"version": "2"}, d.Generation+1
	})
	failures["its controller has given up"].fail(b, "a")
	b.lead()
	b.change("200")
	b.becomes("b", func(d *appsv1.Deployment) { delete(d.Annotations, "keyturn.dev/hold") })
	b.rolled("when the hold is taken off", "a", "b")
}
