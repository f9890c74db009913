package actuate

import (
	"strconv"

	"github.com/keyturn/keyturn/internal/events"
)

// forget makes the stream lose the last event of a source, as when its volume is replaced, or when the source was gone for long.
func (s *simulation) forget(source *simulatedSource) {
	source.lost, source.lostUID = true, 0
	if source.data != nil {
		source.lostUID = source.uid
	}
	source.unknown = source.unknown || s.removed && !source.acked // Only this leader knows what is to be done.
	source.event, source.said, source.sent, source.acked = events.Change{}, nil, false, true
	source.seq, source.superseded = 0, nil
	s.notef("%d: the stream lost %s", s.version, source)
}

// serve sets whether the status of the workload says that its pods are available.
func (s *simulation) serve() {
	since := ""
	if !s.waiting {
		since = strconv.Itoa(s.startedAt)
	}
	if s.w.ServingSince != since {
		after := *s.w
		after.ServingSince = since
		s.w = &after
	}
}
