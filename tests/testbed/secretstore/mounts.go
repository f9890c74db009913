package secretstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// MountKV mounts a KV store of version 1 or 2 at a path, such as "secret".
func (s *Store) MountKV(ctx context.Context, path string, version int) error {
	err := s.client.Sys().MountWithContext(ctx, path, &api.MountInput{
		Type: "kv", Options: map[string]string{"version": strconv.Itoa(version)},
	})
	if err != nil {
		return fmt.Errorf("mount a KV store at %s: %w", path, err)
	}
	if version == 1 {
		return nil
	}
	// The store prepares a mount of version 2 in the background, and refuses requests until it is done.
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, process.StartTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.Logical().ReadWithContext(ctx, path+"/config")
		if err != nil && strings.Contains(err.Error(), "Upgrading from non-versioned") {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the KV store at %s: %w", path, err)
	}
	return nil
}
