package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// It was made and deleted before the loop took either from the dirty set, as while it reads the stream when it begins to lead.
func TestAWorkloadThatIsGoneBeforeItIsLookedAtHasNoTurn(t *testing.T) {
	n := &notes{
		term:    &term{surroundings: new(surroundings), now: time.Now, index: new(inventory.Index)},
		records: records{turns: make(map[workload.Key]*recordTurn)},
	}
	n.want(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"})
	n.record(t.Context())
	if len(n.turns) > 0 {
		t.Errorf("%d turns are left", len(n.turns))
	}
}
