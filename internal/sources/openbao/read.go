package openbao

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// metadata is what is read of a KV v2 secret's metadata.
type metadata struct {
	CurrentVersion integer `json:"current_version"`
	Versions       map[string]struct {
		CreatedTime  instant `json:"created_time"`
		DeletionTime instant `json:"deletion_time"`
		Destroyed    bool    `json:"destroyed"`
	} `json:"versions"`
}

// state is what the metadata says at a time by the store's clock. Metadata without a version is of a secret that was never
// written, which nobody can read: it is Gone. It is false where the current version is not among the versions.
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
	// A deletion may be ahead: delete_version_after.
	case !deleted.IsZero() && !deleted.After(now):
		return version, Deleted, deleted, ok
	}
	return version, Live, time.Time(current.CreatedTime), ok
}

// role is what is read of a static role. Its password is elsewhere.
type role struct {
	LastRotation instant `json:"last_vault_rotation"`
}

// read asks the store what has become of a secret. What is not there any more is Gone.
func (s *store) read(ctx context.Context, path events.StorePath) (Observation, error) {
	in, err := s.mounts.of(ctx, path.Namespace, path.Mount+"/"+path.Path)
	if err != nil {
		return Observation{}, err
	}
	if in.path != path.Mount {
		return Observation{}, fmt.Errorf("%s: %w", path.Mount, errNoMount)
	}
	return s.readIn(ctx, in, path.Path)
}

// readIn is read where the mount is known.
func (s *store) readIn(ctx context.Context, in mount, path string) (Observation, error) {
	switch {
	case in.engine == events.EngineKV && in.version == kvV2:
		return s.readKV(ctx, in, path)
	case in.engine == events.EngineKV:
		return Observation{}, fmt.Errorf("%s: %w", in.path, errUnversioned)
	case in.engine == events.EngineDatabase || in.engine == events.EngineLDAP:
		return s.readRole(ctx, in, path)
	}
	return Observation{}, fmt.Errorf("%s: %w", in.path, errEngine)
}

func (s *store) readKV(ctx context.Context, in mount, path string) (Observation, error) {
	var m metadata
	got, err := s.client.get(ctx, in.namespace, in.path+"/metadata/"+path, nil, &m)
	return s.seen(in, path, &m, got, err)
}

// seen is what the answer about the metadata of a secret says.
func (s *store) seen(in mount, path string, m *metadata, got answer, err error) (Observation, error) {
	o := s.observation(in, path, got)
	if err != nil {
		return o, orGone(&o, err)
	}
	var ok bool
	if o.Version, o.State, o.At, ok = m.state(got.date); !ok {
		return o, fmt.Errorf("the metadata in %s: %w", in.path, errAnswer)
	}
	return o, nil
}

func (s *store) readRole(ctx context.Context, in mount, path string) (Observation, error) {
	names := rolesOf(in.engine)
	name, ok := strings.CutPrefix(path, names.secret+"/")
	if !ok {
		return Observation{}, fmt.Errorf("%s is not %s/<role>: %w", path, names.secret, errPath)
	}
	var r role
	got, err := s.client.get(ctx, in.namespace, in.path+"/"+names.list+"/"+name, nil, &r)
	o := s.observation(in, path, got)
	if err != nil {
		return o, orGone(&o, err)
	}
	o.State, o.At = Live, time.Time(r.LastRotation)
	return o, nil
}

// orGone makes Gone of what is not there. Other errors stay.
func orGone(o *Observation, err error) error {
	if errors.Is(err, errNotThere) {
		o.State = Gone
		return nil
	}
	return err
}

func (s *store) observation(in mount, path string, got answer) Observation {
	return Observation{
		Path:    events.StorePath{Store: s.config.Name, Namespace: in.namespace, Mount: in.path, Path: path},
		Servers: s.config.servers, Engine: in.engine, ReadAt: got.asked, Received: got.received,
	}
}
