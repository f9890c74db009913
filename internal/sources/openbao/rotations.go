package openbao

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// rotationDelay is how long after the time of a rotation, up to a quarter longer, a static role is read. It is read again as often as
	// rotationTries allows while it is not rotated yet: the stores look every five seconds for roles that are to be rotated.
	rotationDelay = 2 * time.Second
	rotationTries = 4
	// maxPeriod bounds the periods of rotations, so that no time overflows.
	maxPeriod = integer(100 * 365 * 24 * 60 * 60)
)

// rotations knows when the static roles that are polled are going to be rotated: their old passwords do not work any more from then on. It
// is safe for concurrent use.
type rotations struct {
	client *client
	now    func() time.Time

	mu    sync.Mutex
	roles map[events.StorePath]rotation
}

// rotation is the next one of a static role.
type rotation struct {
	// last is when the role was rotated last, by the store's clock, and noted when it was read, by ours.
	last, noted time.Time
	// due is when it is to be read, zero if only the next poll reads it.
	due time.Time
	// tries counts the times that it was not rotated yet.
	tries int
}

func newRotations(c *client, now func() time.Time) *rotations {
	return &rotations{client: c, now: now, roles: map[events.StorePath]rotation{}}
}

// note records what was read of a role. One that is rotated by a schedule rather than a period is left to the polls.
func (r *rotations) note(path events.StorePath, role staticRole) {
	last, period := time.Time(role.LastRotation), time.Duration(min(role.Period, maxPeriod))*time.Second
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.roles[path]
	next := rotation{last: last, noted: now}
	switch at := last.Add(period - r.client.skew()); {
	case last.IsZero() || period == 0:
		delete(r.roles, path)
		return
	case at.After(now):
		next.due = at.Add(wait.Jitter(rotationDelay, 0.25))
	case known.last.Equal(last) && known.tries < rotationTries:
		next.due, next.tries = now.Add(wait.Jitter(rotationDelay, 0.25)), known.tries+1
	default:
		// The store is late, such as without a connection to the database.
		next.tries = rotationTries
	}
	r.roles[path] = next
}

// next returns when a role is to be read, if any is.
func (r *rotations) next() (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, role := range r.roles {
		if !role.due.IsZero() && (at.IsZero() || role.due.Before(at)) {
			at = role.due
		}
	}
	return at, !at.IsZero()
}

// take returns the roles that are to be read now, each once.
func (r *rotations) take() []events.StorePath {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []events.StorePath
	for path, role := range r.roles {
		if !role.due.IsZero() && !role.due.After(now) {
			due = append(due, path)
			role.due = time.Time{}
			r.roles[path] = role
		}
	}
	return due
}

// forget drops the roles that were not read since a time. They are not polled any more.
func (r *rotations) forget(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, role := range r.roles {
		if role.noted.Before(before) {
			delete(r.roles, path)
		}
	}
}
