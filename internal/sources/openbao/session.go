package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
)

// The times of a session.
const (
	// minLogin is the least time between two logins that the store's refusals cause.
	minLogin = 10 * time.Second
	// minRenewal and maxRenewal bound the time to the next renewal.
	minRenewal = time.Second
	maxRenewal = 24 * time.Hour
	// renewalTimeout bounds a login and a renewal.
	renewalTimeout = 15 * time.Second
)

// session has a token for a store, and keeps it valid.
type session struct {
	auth  authConfig
	store *api.Client // without a token, in the namespace of the login
	log   *slog.Logger
	now   func() time.Time

	mu       sync.Mutex // held while logging in, so that only one does
	token    string
	ttl      time.Duration // as it was when the token was new; zero where it does not end
	renewAt  time.Time     // zero where there is no need
	loggedIn time.Time
	told     string // the kind of the last failure that was logged
}

// current is a valid token, as far as is known.
func (s *session) current(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(ctx)
}

func (s *session) take(ctx context.Context) (string, error) {
	if !s.auth.logsIn() {
		token, err := s.auth.given()
		if err == nil && token != s.token {
			s.token = token
			s.inspect(ctx)
		}
		return token, err
	}
	if s.token == "" {
		if err := s.login(ctx); err != nil {
			return "", err
		}
	}
	return s.token, nil
}

// refused is told that the store refused a token. It tells whether there is another one to try.
func (s *session) refused(ctx context.Context, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.logsIn() && s.token == token {
		// A token is refused where it has ended, and where it may not do what was asked. A token that may not even ask about
		// itself cannot tell which, so a login is tried, but not too often.
		if s.now().Sub(s.loggedIn) < minLogin || s.alive(ctx) {
			return false
		}
		s.token = ""
	}
	another, err := s.take(ctx)
	return err == nil && another != token
}

// alive tells whether the token is known not to have ended.
func (s *session) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	_, err := s.authorized().Auth().Token().LookupSelfWithContext(ctx)
	return err == nil
}

func (s *session) login(ctx context.Context) error {
	s.loggedIn = s.now()
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	granted, err := s.auth.login(ctx, s.store)
	if err != nil {
		return err
	}
	s.token, s.ttl = granted.ClientToken, time.Duration(granted.LeaseDuration)*time.Second
	s.schedule(s.ttl)
	return nil
}

// inspect finds out when a token that was given must be renewed. A token that may not ask is left alone.
func (s *session) inspect(ctx context.Context) {
	s.ttl, s.renewAt = 0, time.Time{}
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	answer, err := s.authorized().Auth().Token().LookupSelfWithContext(ctx)
	if err != nil {
		return
	}
	ttl, err := answer.TokenTTL()
	renewable, _ := answer.TokenIsRenewable()
	if err == nil && renewable {
		s.ttl = ttl
		s.schedule(ttl)
	}
}

// authorized is the client with the token.
func (s *session) authorized() *api.Client {
	client := s.store.WithNamespace(s.store.Namespace())
	client.SetToken(s.token)
	return client
}

// schedule sets the time of the next renewal to two thirds of what is left.
func (s *session) schedule(ttl time.Duration) {
	if ttl <= 0 {
		s.renewAt = time.Time{}
		return
	}
	s.renewAt = s.now().Add(min(max(ttl/3*2, minRenewal), maxRenewal))
}

// run keeps the token valid until ctx is done.
func (s *session) run(ctx context.Context) {
	wait := time.Duration(0)
	for pause(ctx, wait) {
		wait = s.keep(ctx)
	}
}

// keep renews the token where it is time, and gives the time until it is to be called again.
func (s *session) keep(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.renewal(ctx)
	if err != nil && ctx.Err() == nil {
		if s.told != kind(err) {
			s.told = kind(err)
			s.log.WarnContext(ctx, "token of the store is not renewed", "err", err)
		}
		return minLogin
	}
	s.told = ""
	if s.renewAt.IsZero() {
		return time.Minute
	}
	return max(s.renewAt.Sub(s.now()), minRenewal)
}

func (s *session) renewal(ctx context.Context) error {
	if _, err := s.take(ctx); err != nil || s.renewAt.IsZero() || s.now().Before(s.renewAt) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	answer, err := s.authorized().Auth().Token().RenewSelfWithContext(ctx, 0)
	if err == nil && answer != nil && answer.Auth != nil {
		ttl := time.Duration(answer.Auth.LeaseDuration) * time.Second
		s.schedule(ttl)
		// A token near its end is renewed for less and less.
		if ttl >= s.ttl/2 || !s.auth.logsIn() {
			return nil
		}
	}
	if s.auth.logsIn() {
		return s.login(ctx)
	}
	if err == nil {
		err = errAnswer
	}
	return fmt.Errorf("renewing the token: %w", plain(err))
}

// pause waits, and tells whether ctx is not done.
func pause(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
