package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
)

const (
	// minLogin is the minimum time between two logins.
	minLogin = 10 * time.Second
	// tokenTimeout bounds a login, a renewal and a lookup of the token.
	tokenTimeout = 15 * time.Second
)

// session holds a token of a store and keeps it valid.
type session struct {
	auth     authConfig
	requests *api.Client // without a token, in the namespace of the login
	log      *slog.Logger
	now      func() time.Time

	mu         sync.Mutex // held during a login, so that there is only one
	token      string
	renewal    renewal
	inspected  bool // a given token was looked up, or may not look itself up
	loginTried time.Time
	refused    loginFailures
	logged     string // the kind of the last failure that was logged
}

func newSession(auth authConfig, requests *api.Client, now func() time.Time, log *slog.Logger) *session {
	return &session{auth: auth, requests: requests, now: now, log: log}
}

// run renews the token in time, until ctx is done.
func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		backoff.Sleep(ctx, s.keep(ctx))
	}
}

// current returns a token that is not known to be invalid.
func (s *session) current(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := s.obtain(ctx)
	if err != nil {
		return "", &tokenError{err}
	}
	return token, nil
}

// replaceRefused replaces a token that the store refused, or drops it if there is no other. It returns false if it is still the current one.
func (s *session) replaceRefused(ctx context.Context, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.logsIn() && s.token == token {
		// A store refuses a token that has expired, and a request that the token's policy does not allow. The lookup distinguishes
		// the two, unless the policy denies that too. Then a login is tried, but not too often.
		if s.now().Sub(s.loginTried) < minLogin || s.alive(ctx) {
			return false
		}
		s.token = ""
	}
	another, err := s.obtain(ctx)
	return err != nil || another != token
}

// obtain returns the configured token, or else the last one that a login returned.
func (s *session) obtain(ctx context.Context) (string, error) {
	if !s.auth.logsIn() {
		token, err := s.auth.given()
		if err == nil && token != s.token {
			s.token, s.inspected = token, false
			s.inspect(ctx)
		}
		return token, err
	}
	if s.token == "" {
		if err := s.logIn(ctx); err != nil {
			return "", err
		}
	}
	return s.token, nil
}

// logIn requests a token, or returns the error of the last attempt if it is too early for another one.
func (s *session) logIn(ctx context.Context) error {
	path, data, err := s.auth.credentials()
	if err != nil {
		return err
	}
	if err := s.refused.recent(data, s.now()); err != nil {
		return err
	}
	s.loginTried = s.now()
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	granted, err := login(limited, s.requests, path, data)
	if err != nil {
		if ctx.Err() == nil {
			s.refused.note(data, err, s.auth.AppRole != nil, s.now())
		}
		return err
	}
	s.refused = loginFailures{}
	s.token, s.renewal = granted.ClientToken, newRenewal(seconds(granted.LeaseDuration), s.now())
	return nil
}

// inspect schedules the renewal of a given token. A token that may not look itself up is left alone; if the store does not answer, keep tries
// again.
func (s *session) inspect(ctx context.Context) {
	s.renewal = renewal{}
	looked, err := s.lookUp(ctx)
	if err != nil {
		s.inspected = final(plain(err))
		return
	}
	s.inspected = true
	ttl, err := looked.TokenTTL()
	renewable, _ := looked.TokenIsRenewable()
	if err == nil && renewable {
		s.renewal = newRenewal(ttl, s.now())
	}
}

// alive reports whether the token is known to be valid.
func (s *session) alive(ctx context.Context) bool {
	_, err := s.lookUp(ctx)
	return err == nil
}

func (s *session) lookUp(ctx context.Context) (*api.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	return s.authorized().Auth().Token().LookupSelfWithContext(ctx)
}

// authorized returns a client with the token.
func (s *session) authorized() *api.Client {
	authorized := s.requests.WithNamespace(s.requests.Namespace())
	authorized.SetToken(s.token)
	return authorized
}

// keep renews the token if its renewal is due, and returns the time until the next call.
func (s *session) keep(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.renew(ctx); err != nil && ctx.Err() == nil {
		if s.logged != kind(err) {
			s.logged = kind(err)
			s.log.WarnContext(ctx, "store token not renewed", "err", err)
		}
		return wait.Jitter(minLogin, renewalJitter)
	}
	s.logged = ""
	if !s.auth.logsIn() && !s.inspected {
		return wait.Jitter(minLogin, renewalJitter)
	}
	return s.renewal.next(s.now())
}

// renew renews the token if its renewal is due. If that fails, or extends the token too little, it logs in again if it can.
func (s *session) renew(ctx context.Context) error {
	if _, err := s.obtain(ctx); err != nil {
		return err
	}
	if !s.auth.logsIn() && !s.inspected {
		s.inspect(ctx)
	}
	if !s.renewal.due(s.now()) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	renewed, err := s.authorized().Auth().Token().RenewSelfWithContext(limited, 0)
	if err == nil && renewed != nil && renewed.Auth != nil {
		ttl := seconds(renewed.Auth.LeaseDuration)
		s.renewal.extend(ttl, s.now())
		if !s.auth.logsIn() || !s.renewal.exhausted(ttl) {
			return nil
		}
	}
	if s.auth.logsIn() {
		return s.logIn(ctx)
	}
	if err == nil {
		err = errAnswer
	}
	return fmt.Errorf("renewing the token: %w", plain(err))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

const (
	// minRenewal and maxRenewal bound the time to the next renewal.
	minRenewal = time.Second
	maxRenewal = 24 * time.Hour
	// idleRenewal is how often the token is read if it needs no renewal, because its file can be replaced.
	idleRenewal = time.Minute
	// renewalJitter spreads the renewals of tokens that were issued at the same time.
	renewalJitter = 0.1
)

// renewal schedules the renewals of one token. The zero value is for a token that needs none.
type renewal struct {
	initial time.Duration // the time to live when the token was new
	at      time.Time     // zero: never
}

// newRenewal returns the schedule of a new token. A time to live of zero means that the token does not expire.
func newRenewal(ttl time.Duration, now time.Time) renewal {
	r := renewal{initial: ttl}
	r.extend(ttl, now)
	return r
}

// extend schedules the next renewal after two thirds of the time to live, or a little later.
func (r *renewal) extend(ttl time.Duration, now time.Time) {
	r.at = time.Time{}
	if ttl > 0 {
		r.at = now.Add(min(max(wait.Jitter(ttl/3*2, renewalJitter), minRenewal), maxRenewal))
	}
}

func (r *renewal) due(now time.Time) bool { return !r.at.IsZero() && !now.Before(r.at) }

// exhausted reports whether a renewal extended the token so little that it will soon reach its maximum lifetime.
func (r *renewal) exhausted(ttl time.Duration) bool { return ttl < r.initial/2 }

// next returns the time until the token must be looked at again.
func (r *renewal) next(now time.Time) time.Duration {
	if r.at.IsZero() {
		return idleRenewal
	}
	return max(r.at.Sub(now), minRenewal)
}
