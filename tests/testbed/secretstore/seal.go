package secretstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/vault/api"
)

// initialise creates the keys and the root token of a new store.
func (s *Store) initialise(ctx context.Context) error {
	made, err := s.client.Sys().InitWithContext(ctx, &api.InitRequest{SecretShares: 1, SecretThreshold: 1})
	if err != nil {
		return fmt.Errorf("initialise: %w", err)
	}
	s.client.SetToken(made.RootToken)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = made.Keys[0]
	return nil
}

// Seal makes the server refuse everything that needs its data, as after a start, until it is unsealed.
func (s *Store) Seal(ctx context.Context) error {
	if err := s.client.Sys().SealWithContext(ctx); err != nil {
		return fmt.Errorf("seal the secret store: %w", err)
	}
	return nil
}

// Unseal gives the server the key to its data, and returns when the server serves the data.
func (s *Store) Unseal(ctx context.Context) error {
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	status, err := s.client.Sys().UnsealWithContext(ctx, key)
	if err == nil && status.Sealed {
		err = errors.New("it is still sealed")
	}
	if err != nil {
		return fmt.Errorf("unseal the secret store: %w", err)
	}
	return nil
}
