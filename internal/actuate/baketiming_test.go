package actuate

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/internal/plan"
)

// An alert fires if pods are ready later than five minutes after a change, which is as long as the default bake.
func TestTheWaitForACanaryIsNoTimeThatAChangeTook(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")), deploymentOf("c", "db", inWave("1")))
	reader := sdkmetric.NewManualReader()
	b.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	b.lead()
	b.change("200")
	b.pass(30 * time.Second)
	b.ready("a")
	b.pass(defaultBake)
	b.rolled("when it has baked", "a", "b")
	b.pass(20 * time.Second)
	b.ready("b")
	b.rolled("when the lower wave is finished", "a", "b", "c")
	b.pass(10 * time.Second)
	b.ready("c")
	// The time that c waits for the lower wave counts.
	if count, sum := spent(t, reader, "keyturn.change.patch.duration"); count != 3 || sum != 20 {
		t.Errorf("%d patches took %v s, want 3 and 20 s", count, sum)
	}
	if count, sum := spent(t, reader, "keyturn.change.ready.duration"); count != 3 || sum != 30+20+30 {
		t.Errorf("the pods of %d workloads took %v s to be ready, want 3 and 80 s", count, sum)
	}
}

func TestWhoseWaitIsChosen(t *testing.T) {
	for _, canary := range []bool{true, false} {
		options := testOptions()
		options.Canary = canary
		d := loopOf(t, options).dispatcher
		chosen := map[plan.Reason]bool{
			plan.OnHold: true, plan.WindowClosed: true, plan.FilesPending: true, plan.LowerWave: false, plan.PeerFailed: false, plan.Limit: false,
			plan.CanaryFirst: canary, // without the flag it is a consequence of a rollout that failed
		}
		for why, want := range chosen {
			if got := d.isChosen(why); got != want {
				t.Errorf("with --canary=%t: %s is chosen: %t, want %t", canary, why, got, want)
			}
		}
	}
}
