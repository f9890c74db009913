package openbao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

// metadata is the decoded part of a KV v2 secret's metadata.
type metadata struct {
	CurrentVersion integer `json:"current_version"`
	Versions       map[string]struct {
		CreatedTime  instant `json:"created_time"`
		DeletionTime instant `json:"deletion_time"`
		Destroyed    bool    `json:"destroyed"`
	} `json:"versions"`
}

// state returns the state at the given time by the store's clock. A secret without versions was never written and cannot be read, so it is Gone. ok
// is false if the current version is missing among the versions.
func (m *metadata) state(now time.Time) (version int64, state State, at time.Time, ok bool) {
	version = int64(m.CurrentVersion)
	if version == 0 {
		return 0, Gone, time.Time{}, true
	}
	current, ok := m.Versions[strconv.FormatInt(version, 10)]
	deleted := time.Time(current.DeletionTime)
	switch {
	case current.Destroyed:
		return version, Destroyed, time.Time{}, ok
	// delete_version_after schedules a deletion in the future.
	case !deleted.IsZero() && !deleted.After(now):
		return version, Deleted, deleted, ok
	}
	return version, Live, time.Time(current.CreatedTime), ok
}

// staticRole is the decoded part of a static role. Its password is at another path.
type staticRole struct {
	LastRotation instant `json:"last_vault_rotation"`
	Period       integer `json:"rotation_period"` // in seconds; zero if rotations follow a schedule
}

type metadataReader struct {
	config    *storeConfig
	client    *client
	mounts    *mountTable
	rotations *looks        // looks at static roles when their rotation is due
	horizon   time.Duration // how far ahead rotations are expected: longer than until the next poll; zero without polls
}

// readIn reads a secret of a mount. A secret that does not exist is Gone.
func (r *metadataReader) readIn(ctx context.Context, in engineMount, path string) (Observation, error) {
	at, err := in.places()
	if err != nil {
		return Observation{}, err
	}
	name, ok := strings.CutPrefix(path, at.secret)
	if !ok {
		return Observation{}, fmt.Errorf("%s is not %s<role>: %w", path, at.secret, errPath)
	}
	var found struct {
		metadata
		staticRole
	}
	got, err := r.client.get(ctx, in.namespace, in.path+"/"+at.list+"/"+name, nil, &found)
	o := r.config.observation(in, path, got.asked, got.received)
	switch {
	case errors.Is(err, errNotThere):
		o.State, err = Gone, nil
	case err != nil:
	case in.engine == events.EngineKV:
		if o.Version, o.State, o.At, ok = found.state(got.date); !ok {
			err = fmt.Errorf("metadata in %s: %w", in.path, errAnswer)
		}
	default:
		o.State, o.At = Live, time.Time(found.LastRotation)
		r.expectRotation(in.namespace, in.path+"/"+at.rotate+"/"+name, found.staticRole)
	}
	return o, err
}

const (
	// rotationDelay is the time from the due rotation of a static role to the read, plus up to a quarter. The read is repeated up to rotationTries
	// times until the role is rotated, because stores check every five seconds for roles to rotate.
	rotationDelay = 2 * time.Second
	rotationTries = 4
	// maxPeriod limits the periods of rotations, so that times do not overflow.
	maxPeriod = integer(100 * 365 * 24 * 60 * 60)
)

// expectRotation schedules a look at a role soon after its next rotation, because the old password stops working then. The polls handle roles that
// are late, or that are rotated by a schedule and not a period.
func (r *metadataReader) expectRotation(namespace, request string, role staticRole) {
	now := r.client.now()
	last, period := time.Time(role.LastRotation), time.Duration(min(role.Period, maxPeriod))*time.Second
	at := last.Add(period) // by the store's clock
	until := at.Sub(now.Add(r.client.skew()))
	if last.IsZero() || period == 0 || until <= 0 || until > r.horizon {
		return
	}
	r.rotations.put(look{
		// Changes may be a little older than their lines. This one is not.
		entry:      entry{namespace: namespace, path: request, at: at.Add(maxLineDelay), received: now},
		isRotation: true,
		tries:      maxTries - 1 - rotationTries,
		due:        now.Add(until + wait.Jitter(rotationDelay, 0.25)),
		backoff:    wait.Backoff{Duration: rotationDelay, Jitter: 0.25},
	})
}

// These types are decoded leniently: the audit log replaces values with HMACs, so any text may be in the place of a time or a number.

// integer is a positive integer, or zero.
type integer int64

func (i *integer) UnmarshalJSON(text []byte) error {
	var n int64
	if json.Unmarshal(text, &n) == nil && n > 0 {
		*i = integer(n)
	}
	return nil
}
