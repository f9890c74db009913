package openbao

import (
	"maps"
	"math"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxLoginDelay is the maximum delay after a login that failed.
	maxLoginDelay = time.Minute
	// maxRefusedDelay is the maximum delay after an AppRole login that the store refused. Five refused logins lock the role for 15 minutes, and the
	// count is reset after 15 minutes without one, so the delay exceeds that after at most four.
	maxRefusedDelay = 16 * time.Minute
	// unansweredDelay is the delay after a login to which the store gave no verdict.
	unansweredDelay = time.Second
)

// loginFailures spaces logins that fail. The zero loginFailures has none.
type loginFailures struct {
	sent    map[string]any // the credentials of the last failure
	err     error
	again   time.Time
	backoff wait.Backoff
}

// recent returns the last failure if it is too early to log in again with these credentials, and otherwise nil. Other credentials may be used at
// once, because they may be right.
func (f *loginFailures) recent(sent map[string]any, now time.Time) error {
	if f.err == nil || !now.Before(f.again) || !maps.Equal(f.sent, sent) {
		return nil
	}
	return f.err
}

// note records a failure. locks means that the store locks credentials that it refuses too often.
func (f *loginFailures) note(sent map[string]any, err error, locks bool, now time.Time) {
	if f.err == nil || !maps.Equal(f.sent, sent) {
		*f = loginFailures{sent: sent, backoff: wait.Backoff{Duration: minLogin, Factor: 6, Jitter: 0.1, Steps: math.MaxInt, Cap: maxLoginDelay}}
		if locks {
			f.backoff.Cap = maxRefusedDelay
		}
	}
	f.err = err
	f.again = now.Add(f.delay(code(err)))
}

// delay returns how long to wait after an answer with that status, or after none, which is 0.
func (f *loginFailures) delay(answered int) time.Duration {
	switch {
	case rejected(answered):
		return f.backoff.Step()
	case answered >= http.StatusBadRequest && answered < http.StatusInternalServerError:
		return minLogin // A rate limit, for example. The credentials were not judged, so nothing is locked.
	}
	return unansweredDelay
}
