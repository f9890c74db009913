package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	tokenTimeout = 15 * time.Second // of a login, a renewal and a token look-up
	// minRenewal and maxRenewal limit the time to the next renewal, and renewalJitter spreads renewals of tokens from the same time.
	minRenewal    = time.Second
	maxRenewal    = 24 * time.Hour
	renewalJitter = 0.1
	// idleRenewal is how often a token without renewals is read, because its file can be replaced.
	idleRenewal = time.Minute
	// soonUsedUp is the shortest lifetime of a token with limited uses that is worth no warning.
	soonUsedUp = time.Minute
)

// session holds a token of a store and keeps it valid.
type session struct {
	auth     authConfig
	requests *api.Client // without a token, in the namespace of the login
	log      *slog.Logger
	now      func() time.Time

	mu         sync.Mutex // held during a login, so that there is only one
	token      string
	initial    time.Duration // the time to live of the new token
	renewAt    time.Time     // zero: never
	inspected  bool          // a configured token was looked up, or may not be
	limit      int           // the maximum number of uses; zero: unlimited
	left       int           // remaining uses, if they are limited
	warned     int           // the last limit that was logged
	loginTried time.Time
	doubted    time.Time // when a token with limited uses was last assumed to be used up, despite its count
	refused    loginFailures
	logged     string // the kind of the last logged failure
}

func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		kube.Sleep(ctx, s.keep(ctx))
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
	s.use()
	return token, nil
}

// use counts a use of the token.
func (s *session) use() { s.left = max(s.left-1, 0) }

func (s *session) isUsedUp() bool { return s.limit != 0 && s.left == 0 }

// replaceRefused replaces a token that the store refused, or drops it if there is no other. It returns false if the token is still the current one.
func (s *session) replaceRefused(ctx context.Context, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.logsIn() && s.token == token {
		// The token has expired, or its policy does not allow the request. A look-up tells which, unless the policy denies that, too. Then it tries a
		// login, but not too often, because anyone may name paths that the policy denies. A token with limited uses may be used up earlier than its
		// count says, even soon after a login.
		last := s.loginTried
		if s.limit != 0 && !s.isUsedUp() {
			last = s.doubted
		}
		if s.now().Sub(last) < minLogin {
			return false
		}
		s.doubted = s.now()
		if _, err := s.lookUp(ctx); err == nil {
			return false
		}
		s.token = ""
	}
	another, err := s.obtain(ctx)
	return err != nil || another != token
}

// obtain returns the configured token, or else that of the last login if it is not used up.
func (s *session) obtain(ctx context.Context) (string, error) {
	if !s.auth.logsIn() {
		token, err := s.auth.given()
		if err == nil && token != s.token {
			s.token, s.inspected = token, false
			s.inspect(ctx)
		}
		if err == nil && s.isUsedUp() {
			err = errUsedUp
		}
		return token, err
	}
	if s.isUsedUp() && s.now().Sub(s.loginTried) < soonUsedUp {
		s.warnOfLimit(ctx)
	}
	if s.token == "" || s.isUsedUp() {
		if err := s.logIn(ctx); err != nil {
			return "", err
		}
	}
	return s.token, nil
}

// warnOfLimit logs that tokens have limited uses, once for each limit.
func (s *session) warnOfLimit(ctx context.Context) {
	if s.warned != s.limit {
		s.warned = s.limit
		s.log.WarnContext(ctx, "store tokens are soon used up: set token_num_uses of the role to 0", "uses", s.limit)
	}
}

// inspect schedules the renewal of a configured token. A token that may not look itself up is not renewed. Without an answer, keep tries again.
func (s *session) inspect(ctx context.Context) {
	s.startRenewals(0)
	s.limit, s.left = 0, 0
	looked, err := s.lookUp(ctx)
	if err != nil {
		s.inspected = final(plain(err))
		return
	}
	s.inspected = true
	const unknown = -1 // The number is unknown. It is lower after the last use.
	if uses, err := looked.TokenRemainingUses(); err == nil && uses != 0 && uses != unknown {
		s.limit, s.left = uses, max(uses, 0)
		s.warnOfLimit(ctx)
	}
	ttl, err := looked.TokenTTL()
	if renewable, _ := looked.TokenIsRenewable(); err == nil && renewable {
		s.startRenewals(ttl)
	}
}

func (s *session) lookUp(ctx context.Context) (*api.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	return s.own().LookupSelfWithContext(ctx)
}

// own returns the API for a single request about the token itself.
func (s *session) own() *api.TokenAuth {
	authorized := s.requests.WithNamespace(s.requests.Namespace())
	authorized.SetToken(s.token)
	s.use()
	return authorized.Auth().Token()
}

// keep renews the token if its renewal is due, and returns the time until the next call.
func (s *session) keep(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged := s.logged
	s.logged = ""
	switch err := s.renew(ctx); {
	case err != nil && ctx.Err() == nil:
		if s.logged = kind(err); s.logged != logged {
			s.log.WarnContext(ctx, "store token not renewed", "err", err)
		}
		return wait.Jitter(minLogin, renewalJitter)
	case !s.auth.logsIn() && !s.inspected:
		return wait.Jitter(minLogin, renewalJitter)
	case s.renewAt.IsZero():
		return idleRenewal
	}
	return max(s.renewAt.Sub(s.now()), minRenewal)
}

// renew renews the token if its renewal is due. If that fails, or if the token will soon reach its maximum lifetime, it logs in again if possible.
func (s *session) renew(ctx context.Context) error {
	if _, err := s.obtain(ctx); err != nil {
		return err
	}
	if !s.auth.logsIn() && !s.inspected {
		s.inspect(ctx)
	}
	if s.renewAt.IsZero() || s.now().Before(s.renewAt) {
		return nil
	}
	if s.auth.logsIn() && s.limit != 0 {
		return s.logIn(ctx) // A renewal would be a use.
	}
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	renewed, err := s.own().RenewSelfWithContext(limited, 0)
	if err == nil && renewed != nil && renewed.Auth != nil {
		ttl := time.Duration(renewed.Auth.LeaseDuration) * time.Second
		s.renewAt = renewalOf(ttl, s.now())
		if !s.auth.logsIn() || ttl >= s.initial/2 {
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

// startRenewals schedules the first renewal of a new token. A time to live of zero means that the token does not expire.
func (s *session) startRenewals(ttl time.Duration) {
	s.initial, s.renewAt = ttl, renewalOf(ttl, s.now())
}

// renewalOf returns when to renew a token: after two thirds of its time to live, or a little later. It is zero if the token does not expire.
func renewalOf(ttl time.Duration, now time.Time) time.Time {
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(min(max(wait.Jitter(ttl/3*2, renewalJitter), minRenewal), maxRenewal))
}
