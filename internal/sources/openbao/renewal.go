package openbao

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// minRenewal and maxRenewal bound the time to the next renewal.
	minRenewal = time.Second
	maxRenewal = 24 * time.Hour
	// idleRenewal is how often the token is read if it needs no renewal, because its file can be replaced.
	idleRenewal = time.Minute
	// renewalJitter spreads the renewals of tokens that were issued at the same time.
	renewalJitter = 0.1
)

// renewal schedules the renewals of one token. The zero value is for a token that needs none.
type renewal struct {
	initial time.Duration // the time to live when the token was new
	at      time.Time     // zero: never
}

// newRenewal returns the schedule of a new token. A time to live of zero means that the token does not expire.
func newRenewal(ttl time.Duration, now time.Time) renewal {
	r := renewal{initial: ttl}
	r.extend(ttl, now)
	return r
}

// extend schedules the next renewal after two thirds of the time to live, or a little later.
func (r *renewal) extend(ttl time.Duration, now time.Time) {
	r.at = time.Time{}
	if ttl > 0 {
		r.at = now.Add(min(max(wait.Jitter(ttl/3*2, renewalJitter), minRenewal), maxRenewal))
	}
}

func (r *renewal) due(now time.Time) bool { return !r.at.IsZero() && !now.Before(r.at) }

// exhausted reports whether a renewal extended the token so little that it will soon reach its maximum lifetime.
func (r *renewal) exhausted(ttl time.Duration) bool { return ttl < r.initial/2 }

// next returns the time until the token must be looked at again.
func (r *renewal) next(now time.Time) time.Duration {
	if r.at.IsZero() {
		return idleRenewal
	}
	return max(r.at.Sub(now), minRenewal)
}
