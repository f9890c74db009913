package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheQueueGivesWhatIsDueInItsOrder(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	q := newSettleQueue()
	key := func(name string) workload.Key { return workload.Key{Kind: "deployment", Namespace: "shop", Name: name} }
	for name, wait := range map[string]time.Duration{"late": 3 * time.Second, "early": time.Second, "middle": 2 * time.Second} {
		q.schedule(q.want(key(name), now), now.Add(wait))
	}
	if p := q.pop(now); p != nil {
		t.Errorf("before any is due: got %s", p.key.Name)
	}
	if due, ok := q.next(); !ok || !due.Equal(now.Add(time.Second)) {
		t.Errorf("next: got %s, %t", due, ok)
	}
	// A further change moves it behind the others.
	q.schedule(q.want(key("early"), now), now.Add(4*time.Second))
	for _, want := range []string{"middle", "late", "early"} {
		p := q.pop(now.Add(5 * time.Second))
		if p == nil || p.key.Name != want {
			t.Fatalf("got %v, want %s", p, want)
		}
		q.drop(p)
	}
	if len(q.byKey) != 0 || len(q.order) != 0 {
		t.Errorf("left behind: %v, %v", q.byKey, q.order)
	}
}

func TestWhatIsHeldComesUpWhenItIsReleased(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	q := newSettleQueue()
	q.schedule(q.want(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}, now), now)
	p := q.pop(now)
	q.hold(p, plan.Limit)
	if again := q.pop(now.Add(time.Hour)); again != nil || !p.isHeld() {
		t.Error("it came up while it was held")
	}
	if q.want(p.key, now) != p {
		t.Error("a further change of a held workload begins another entry")
	}
	q.release(p, now.Add(time.Hour))
	if again := q.pop(now.Add(time.Hour)); again != p || p.isHeld() || len(q.held) != 0 {
		t.Error("it did not come up when it was released")
	}
}
