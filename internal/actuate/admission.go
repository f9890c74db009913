package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now.
type admission struct {
	peers  *failedPeers
	waves  *waves
	limits *limits
}

// obstacle returns why a workload that is to be rolled must wait, plan.None if nothing stands in its way. Doing are the decisions
// that its patch would carry out.
func (a *admission) obstacle(w *workload.Workload, doing []plan.Decision) plan.Reason {
	for i := range doing {
		if a.peers.stop(w, &doing[i]) {
			return plan.PeerFailed
		}
		if a.waves.stop(w, doing[i].Source) {
			return plan.LowerWave
		}
	}
	if a.limits.reached(w) {
		return plan.Limit
	}
	return plan.None
}
