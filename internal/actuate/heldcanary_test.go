package actuate

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

// waiting returns a namespace in which c has to go first, and the others are looked at before it: b has more pods, and z1 and z2 have none.
func waiting(t *testing.T, others ...*appsv1.Deployment) *bakeBed {
	t.Helper()
	large := deploymentOf("b", "db", inWave("0"))
	large.Spec.Replicas = new(int32(50))
	z1, z2 := deploymentOf("z1", "db", inWave("0")), deploymentOf("z2", "db", inWave("0"))
	z1.Spec.Replicas, z2.Spec.Replicas = new(int32(0)), new(int32(0))
	return newBakeBed(t, append(others, large, deploymentOf("c", "db", inWave("0")), z1, z2)...)
}

// looksAt sets the order in which waiting workloads are looked at if they are due at the same time.
func (b *bakeBed) looksAt(names ...string) {
	b.Helper()
	for i, name := range names {
		p := b.debounce.byKey[workload.Key{Kind: "deployment", Namespace: "shop", Name: name}]
		p.first = b.now.Add(time.Duration(i-len(names)) * time.Millisecond)
	}
}

func TestOneGoesFirstWhenWhatHeldAllIsOver(t *testing.T) {
	t.Run("the rollout of one that failed was undone", func(t *testing.T) {
		b := waiting(t, deploymentOf("a", "db", inWave("-1")))
		b.change("200")
		failures["its controller has given up"].fail(b, "a")
		b.wantTold("c held peer-failed")
		b.looksAt("z1", "b", "z2", "c")
		b.becomes("a", func(d *appsv1.Deployment) {
			delete(d.Annotations, "keyturn.dev/rolled")
			d.Spec.Template.Annotations, d.Spec.Template.Labels = nil, map[string]string{"version": "2"}
			d.Generation++
			b.complete(d)
		})
		b.rolled("when it was undone", "a", "c")
		b.ready("c")
		b.rolled("while that bakes", "a", "c")
		b.pass(defaultBake)
		b.rolled("when it has baked", "a", "b", "c", "z1", "z2")
	})
	t.Run("the namespace is on hold no more", func(t *testing.T) {
		b := waiting(t)
		namespaces := b.dispatcher.admission.timing.namespaces
		namespaces.Set(b.Context(), "shop", map[string]string{"keyturn.dev/hold": "tofu apply"})
		b.review(b.Context())
		b.change("200")
		b.wantTold("c held on-hold")
		b.looksAt("z1", "b", "z2", "c")
		namespaces.Set(b.Context(), "shop", nil)
		b.review(b.Context())
		b.settle()
		b.rolled("when the hold is taken off", "c")
	})
	t.Run("Reloader has rolled what it rolls", func(t *testing.T) {
		b := waiting(t)
		reloads := b.dispatcher.admission.besideReloader
		reloads.by["shop"], reloads.last = reloaderRoll{b.now, b.now}, b.now
		b.change("200")
		b.rolled("while it rolls")
		b.looksAt("z1", "b", "z2", "c")
		b.pass(reloaderPause)
		b.rolled("when it is done", "c")
	})
}

// b waits for the repair of a, which failed for a change that c does not have.
func TestOneThatWaitsForTheRepairOfAnotherDoesNotGoFirst(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "other", inWave("-1")), readsBoth("b", inWave("0")), deploymentOf("c", "db", inWave("0")))
	b.changeOf("other", "200")
	failures["its controller has given up"].fail(b, "a")
	b.wantTold("b held peer-failed")
	b.change("300")
	b.rolled("c waits for nobody", "a", "c")
}
