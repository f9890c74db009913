package secretstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hashicorp/vault/api"
)

// MountKV mounts a KV store of version 1 or 2 at a path, such as "secret".
func (s *Store) MountKV(ctx context.Context, path string, version int) error {
	err := s.client.Sys().MountWithContext(ctx, path, &api.MountInput{
		Type: "kv", Options: map[string]string{"version": strconv.Itoa(version)},
	})
	if err != nil {
		return fmt.Errorf("mount a KV store at %s: %w", path, err)
	}
	return nil
}
