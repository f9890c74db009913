package actuate

import (
	"fmt"
	"testing"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// BenchmarkOwing looks through 5,000 workloads that are on hold, as the loop does every overdueCheck.
func BenchmarkOwing(b *testing.B) {
	for name, recalled := range map[string]bool{"delivered": false, "noted": true} {
		b.Run(name, func(b *testing.B) {
			a, err := New(testOptions())
			if err != nil {
				b.Fatal(err)
			}
			for i := range 5000 {
				w, ok := a.index.Read(deployments, deploymentOf(fmt.Sprintf("web-%d", i), "db", rollOn("auto")))
				if !ok {
					b.Fatal("no workload")
				}
				w.Rolled = map[string]workload.RolledFor{"secret/db": workload.Owed(workload.RolledFor{UID: "uid", Fingerprint: fp("b")})}
				a.index.Listed(w, "")
			}
			l := newLoop(a.surroundings, unwritten(a))
			for _, w := range a.index.All() {
				p := l.debounce.pend(w, changeOf(nil))
				p.changes[db].event.recalled = recalled
				l.debounce.hold(p, plan.OnHold)
			}
			b.ResetTimer()
			for b.Loop() {
				l.owing.advance(b.Context(), false)
			}
			if !l.patcher.idle() {
				b.Fatal("what is noted is noted again")
			}
		})
	}
}
