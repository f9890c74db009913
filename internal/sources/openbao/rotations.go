package openbao

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// rotationDelay is how long after its rotation is due a static role is read, or up to a quarter longer. While it is not rotated yet, it is read
	// again, up to rotationTries times: the stores look every five seconds for roles to rotate.
	rotationDelay = 2 * time.Second
	rotationTries = 4
	// maxPeriod bounds the periods of rotations, so that no time overflows.
	maxPeriod = integer(100 * 365 * 24 * 60 * 60)
)

// rotations tracks when the polled static roles are due to be rotated, because from then on their old passwords no longer work. It is safe for
// concurrent use.
type rotations struct {
	client *client
	now    func() time.Time

	mu    sync.Mutex
	roles map[events.StorePath]rotation
}

// rotation is the next rotation of a static role.
type rotation struct {
	// last is when the role was last rotated, by the store's clock, and noted is when it was read, by ours.
	last, noted time.Time
	// due is when the role is to be read. It is zero if only the next poll reads it.
	due time.Time
	// tries counts the reads at which the role was not rotated yet.
	tries int
}

func newRotations(c *client, now func() time.Time) *rotations {
	return &rotations{client: c, now: now, roles: map[events.StorePath]rotation{}}
}

// note records what was read of a role. A role that is rotated by a schedule rather than a period is left to the polls.
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
		// The store is late, for example because it has no connection to the database.
		next.tries = rotationTries
	}
	r.roles[path] = next
}

// next returns when the next role is to be read, and false if none is.
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

// forget drops the roles that were last read before the given time. They are no longer polled.
func (r *rotations) forget(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, role := range r.roles {
		if role.noted.Before(before) {
			delete(r.roles, path)
		}
	}
}
