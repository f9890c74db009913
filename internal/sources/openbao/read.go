package openbao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// metadata is the part of a KV v2 secret's metadata that is decoded.
type metadata struct {
	CurrentVersion integer `json:"current_version"`
	Versions       map[string]struct {
		CreatedTime  instant `json:"created_time"`
		DeletionTime instant `json:"deletion_time"`
		Destroyed    bool    `json:"destroyed"`
	} `json:"versions"`
}

// state returns the state at the given time by the store's clock. A secret without a version was never written and cannot be read, so it is Gone.
// ok is false if the current version is missing among the versions.
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

// staticRole is the part of a static role that is decoded. Its password is at another path.
type staticRole struct {
	LastRotation instant `json:"last_vault_rotation"`
	// Period is the time between two rotations, in seconds. It is zero if they follow a schedule.
	Period integer `json:"rotation_period"`
}

// metadataReader reads the state of single secrets.
type metadataReader struct {
	origin    origin
	client    *client
	mounts    *mountTable
	rotations *rotations
}

// read asks the store for the state of a secret. A secret that does not exist is Gone.
func (r *metadataReader) read(ctx context.Context, path events.StorePath) (Observation, error) {
	in, err := r.mounts.find(ctx, path.Namespace, path.Mount+"/"+path.Path)
	if err != nil {
		return Observation{}, err
	}
	if in.path != path.Mount {
		return Observation{}, fmt.Errorf("%s: %w", path.Mount, errNoMount)
	}
	return r.readIn(ctx, in, path.Path)
}

// readIn reads a secret of a mount.
func (r *metadataReader) readIn(ctx context.Context, in engineMount, path string) (Observation, error) {
	switch {
	case in.engine == events.EngineKV && in.version == kvV2:
		return r.readKV(ctx, in, path)
	case in.engine == events.EngineKV:
		return Observation{}, fmt.Errorf("%s: %w", in.path, errUnversioned)
	case in.engine == events.EngineDatabase || in.engine == events.EngineLDAP:
		return r.readRole(ctx, in, path)
	}
	return Observation{}, fmt.Errorf("%s: %w", in.path, errEngine)
}

func (r *metadataReader) readKV(ctx context.Context, in engineMount, path string) (Observation, error) {
	var m metadata
	got, err := r.client.get(ctx, in.namespace, in.path+"/metadata/"+path, nil, &m)
	o := r.origin.ofReply(in, path, got)
	if err != nil {
		return o, orGone(&o, err)
	}
	return o, m.describe(&o, got)
}

// describe sets the state of an observation by the metadata.
func (m *metadata) describe(o *Observation, got reply) error {
	var ok bool
	if o.Version, o.State, o.At, ok = m.state(got.date); !ok {
		return fmt.Errorf("metadata in %s: %w", o.Path.Mount, errAnswer)
	}
	return nil
}

func (r *metadataReader) readRole(ctx context.Context, in engineMount, path string) (Observation, error) {
	places := rolePathsOf(in.engine)
	name, ok := strings.CutPrefix(path, places.secret+"/")
	if !ok {
		return Observation{}, fmt.Errorf("%s is not %s/<role>: %w", path, places.secret, errPath)
	}
	var found staticRole
	got, err := r.client.get(ctx, in.namespace, in.path+"/"+places.list+"/"+name, nil, &found)
	o := r.origin.ofReply(in, path, got)
	if err == nil || errors.Is(err, errNotThere) {
		r.rotations.note(o.Path, found)
	}
	if err != nil {
		return o, orGone(&o, err)
	}
	o.State, o.At = Live, time.Time(found.LastRotation)
	return o, nil
}

// orGone turns errNotThere into the state Gone and returns any other error.
func orGone(o *Observation, err error) error {
	if errors.Is(err, errNotThere) {
		o.State = Gone
		return nil
	}
	return err
}

// The types below decode leniently: the audit log replaces values with HMACs, so a time or a number can be any text.

// instant is a time. Anything that is not a time decodes to zero, and so does a time outside the years below: events have times as nanoseconds
// since 1970, and 64 bits of them end in the year 2262.
type instant time.Time

// The years that a valid time can have: from firstYear up to, but not including, lastYear.
const (
	firstYear = 1970
	lastYear  = 2200
)

func (i *instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if t.UnmarshalJSON(text) == nil && t.UTC().Year() >= firstYear && t.UTC().Year() < lastYear {
		*i = instant(t.UTC())
	}
	return nil
}

// integer is a positive integer. Anything else decodes to zero.
type integer int64

func (i *integer) UnmarshalJSON(text []byte) error {
	var n int64
	if json.Unmarshal(text, &n) == nil && n > 0 {
		*i = integer(n)
	}
	return nil
}

// filled reports whether a field has a value, whatever its type.
type filled bool

func (f *filled) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `null`, `""`, `false`:
	default:
		*f = true
	}
	return nil
}
