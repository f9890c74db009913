package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// position is where an event is on the stream, and what it is of.
type position struct {
	seq      uint64
	storedAt time.Time
	// uid and version are those of the object.
	uid, version string
}

func positionOf(d *events.Delivery) position {
	return position{seq: d.Seq, storedAt: d.StoredAt, uid: d.Change.UID, version: d.Change.ResourceVersion}
}

// isBefore reports whether an event is certainly an earlier one of a source than another. A redelivery may come after a later event: the server that
// sends it may not know of that yet. A stream that was lost begins again at the first sequence, so a lower one proves nothing alone. Nor do
// resourceVersions: an object that was made anew may be of a restored cluster, and a deletion has the last one of the object. The times at which
// the events were stored are by the clocks of two servers at worst.
func (p position) isBefore(other position) bool {
	if p.seq >= other.seq {
		return false
	}
	return p.storedAt.Before(other.storedAt) || p.uid == other.uid && workload.Newer(other.version, p.version)
}
