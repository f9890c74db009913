package openbao

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// refusals remembers for maxNoMountAge which namespaces the token may not see, or are not there. It is for references, of which anybody may write
// many. A line of the audit log may be about a namespace that was created since, so for it the store is asked. It is safe for concurrent use.
type refusals struct {
	now func() time.Time

	mu          sync.Mutex
	byNamespace map[string]refusal
}

type refusal struct {
	asked time.Time
	err   error
}

func newRefusals(now func() time.Time) *refusals {
	return &refusals{now: now, byNamespace: map[string]refusal{}}
}

// note remembers what the store answered about a namespace, if the answer will stay the same. A nil err ends a refusal.
func (r *refusals) note(namespace string, asked time.Time, err error) {
	if errors.Is(err, errNotThere) && namespace != events.RootNamespace {
		err = fmt.Errorf("no namespace %s: %w", namespace, errNoMount)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.byNamespace, namespace)
		return
	}
	if !final(err) {
		return
	}
	if len(r.byNamespace) >= maxNamespaces {
		clear(r.byNamespace)
	}
	r.byNamespace[namespace] = refusal{asked: asked, err: err}
}

// of returns the error of a namespace that was refused a moment ago, or nil.
func (r *refusals) of(namespace string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.byNamespace[namespace]
	if !ok || r.now().Sub(last.asked) >= maxNoMountAge {
		return nil
	}
	return last.err
}
