package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// obstacle is the reason why a workload that is to be rolled must wait.
type obstacle struct {
	reason plan.Reason
	// peer is a workload that it waits for, the only one or one of several. It is nil if the workload waits for no other.
	peer *workload.Workload
	// end is when the wait ends. It is zero if the end depends on others.
	end time.Time
	// paced is when the workload may be rolled if only its pace delays the roll. Otherwise it is zero.
	paced time.Time
	// soon says that the workload only waits for its own moment in an open window, so that others may wait for it.
	soon bool
	// begins says that a pause begins that is not noted on the workload yet.
	begins bool
	// told says that the obstacle was reported before, perhaps by an earlier leader.
	told bool
	// said is the text of a user's reason, or empty.
	said string
}

func (o obstacle) sentence() string {
	text := o.reason.Sentence()
	if !o.end.IsZero() {
		text += ": until " + o.end.UTC().Format(time.RFC3339)
	}
	if o.peer != nil {
		text += ": " + o.peer.ID.String()
	}
	if o.said != "" {
		text += ": " + o.said
	}
	return text
}

// rests reports whether the reason to wait is a user's choice: a time, or an action by people. Thousands of workloads may rest for days, so other
// workloads trigger no review of them, and wait for them only if obstacle.soon is set.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }
