package openbao

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxLooks is the maximum number of paths that wait to be looked at. Each usually takes a few hundred bytes, and never more than a few thousand.
	maxLooks = 4096
	// maxSpare is how many paths may wait when one is put off that no line needs to be looked at soon: one in an unknown mount, because many lines may
	// be about mounts that the token may not see, and one of an expected rotation, which the polls find, too.
	maxSpare = maxLooks / 4
	// maxTries is how many times a path is looked at while the store answers. That takes about six minutes.
	maxTries = 20
)

// look is a path of the store that is to be looked at, because a line of the audit log names it, or because a static role is to be rotated.
type look struct {
	entry      entry // of the last line about the path, or the one that is expected
	isRotation bool  // no line: the rotation is only expected
	wasPutOff  bool  // its mount was not found
	tries      int   // to which the store answered
	due        time.Time
	backoff    wait.Backoff
}

// newLook returns a look at the path of a line that is due now.
func newLook(e entry) look {
	return look{entry: e, backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: 30 * time.Second}}
}

// requestPath is the path of a request in a namespace.
type requestPath struct {
	namespace, path string
	isRotation      bool
}

func (l *look) path() requestPath { return requestPath{l.entry.namespace, l.entry.path, l.isRotation} }

// looks is the bounded set of the paths that wait to be looked at. Of several lines about a path, it keeps the last by the store's clock. It is safe
// for concurrent use.
type looks struct {
	added chan struct{} // readable after a path was added

	mu      sync.Mutex
	waiting map[requestPath]look
}

func newLooks() *looks {
	return &looks{added: make(chan struct{}, 1), waiting: make(map[requestPath]look)}
}

// add adds a look. It returns false if there is no room.
func (l *looks) add(one look) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, waits := l.waiting[one.path()]; waits && before.entry.at.After(one.entry.at) {
		one.entry = before.entry
	}
	if !l.put(one) {
		return false
	}
	select {
	case l.added <- struct{}{}:
	default:
	}
	return true
}

// putBack adds a look that was taken, unless one at the same path was added since. It returns false if there is no room.
func (l *looks) putBack(again look) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, waits := l.waiting[again.path()]; waits {
		if again.entry.at.After(since.entry.at) {
			since.entry = again.entry
		}
		again = since
	}
	return l.put(again)
}

// put is called with the lock held.
func (l *looks) put(one look) bool {
	if _, waits := l.waiting[one.path()]; !waits && len(l.waiting) >= maxLooks {
		return false
	}
	l.waiting[one.path()] = one
	return true
}

// take takes the looks that are due.
func (l *looks) take(now time.Time) []look {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []look
	for path, one := range l.waiting {
		if !one.due.After(now) {
			due = append(due, one)
			delete(l.waiting, path)
		}
	}
	return due
}

// untilDue returns the time until the first look is due.
func (l *looks) untilDue(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := time.Hour
	for _, one := range l.waiting {
		next = min(next, one.due.Sub(now))
	}
	return max(next, 0)
}

func (l *looks) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
