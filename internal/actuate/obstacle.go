package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// obstacle is why a workload that is to be rolled must wait.
type obstacle struct {
	reason plan.Reason
	// peer is the workload that it waits for, or one of them if there are several. It is nil if it waits for no other workload.
	peer *workload.Workload
	// end is when it has waited long enough. It is zero if that depends on others.
	end time.Time
	// paced is when it may be rolled, if nothing but its pace delays that. Otherwise it is zero.
	paced time.Time
	// soon says that it only waits for its own moment within a window that is open, so that others may wait for it.
	soon bool
	// begins says that a pause begins, and that this is not noted on the workload yet.
	begins bool
	// told says that it was reported before, perhaps by an earlier leader.
	told bool
	// said is text that somebody has given as the reason, or empty.
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

// rests reports whether people have chosen that a workload waits for a reason: for a time, or for something that they do. There may be thousands, for
// days, so others cause no review of them, and wait for them only as obstacle.soon says.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }
