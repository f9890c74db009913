package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	tokenTimeout = 15 * time.Second // of a login, a renewal and a lookup of the token
	// minRenewal and maxRenewal bound the time to the next renewal, and renewalJitter spreads those of tokens that were issued at the same time.
	minRenewal    = time.Second
	maxRenewal    = 24 * time.Hour
	renewalJitter = 0.1
	// idleRenewal is how often the token is read if it needs no renewal, because its file can be replaced.
	idleRenewal = time.Minute
	// minLogin is the minimum time between two logins, and maxLogin the maximum delay after one that failed.
	minLogin = 10 * time.Second
	maxLogin = time.Minute
	// maxRefused is the maximum delay after an AppRole login that the store refused. Five refused logins lock the role for 15 minutes, and the count
	// is reset after 15 minutes without one, so the delay exceeds that after at most four.
	maxRefused = 16 * time.Minute
	unanswered = time.Second // the delay after a login to which the store gave no verdict
)

// session holds a token of a store and keeps it valid.
type session struct {
	auth     authConfig
	requests *api.Client // without a token, in the namespace of the login
	log      *slog.Logger
	now      func() time.Time

	mu         sync.Mutex // held during a login, so that there is only one
	token      string
	initial    time.Duration // the token's time to live when it was new
	renewAt    time.Time     // zero: never
	inspected  bool          // a given token was looked up, or may not look itself up
	loginTried time.Time
	refused    loginFailures
	logged     string // the kind of the last failure that was logged
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
	return token, nil
}

// replaceRefused replaces a token that the store refused, or drops it if there is no other. It returns false if it is still the current one.
func (s *session) replaceRefused(ctx context.Context, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.logsIn() && s.token == token {
		// The token has expired, or its policy does not allow the request. The lookup distinguishes the two, unless the policy denies that too. Then
		// a login is tried, but not too often.
		if s.now().Sub(s.loginTried) < minLogin {
			return false
		}
		if _, err := s.lookUp(ctx); err == nil {
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
	if f := &s.refused; f.err != nil && s.now().Before(f.again) && maps.Equal(f.sent, data) {
		return f.err // Other credentials may be right.
	}
	s.loginTried = s.now()
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	granted, err := s.requests.Logical().WriteWithContext(limited, path, data)
	switch {
	case err != nil:
		err = plain(err)
	case granted == nil || granted.Auth == nil || granted.Auth.ClientToken == "":
		err = errAnswer
	}
	if err != nil {
		err = fmt.Errorf("logging in at %s: %w", path, err)
		if ctx.Err() == nil {
			s.refused.note(data, err, s.auth.AppRole != nil, s.now())
		}
		return err
	}
	s.refused = loginFailures{}
	s.token = granted.Auth.ClientToken
	s.startRenewals(time.Duration(granted.Auth.LeaseDuration) * time.Second)
	return nil
}

// inspect schedules the renewal of a given token. One that may not look itself up is left alone. Without an answer, keep tries again.
func (s *session) inspect(ctx context.Context) {
	s.startRenewals(0)
	looked, err := s.lookUp(ctx)
	if err != nil {
		s.inspected = final(plain(err))
		return
	}
	s.inspected = true
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

// own returns the requests about the token.
func (s *session) own() *api.TokenAuth {
	authorized := s.requests.WithNamespace(s.requests.Namespace())
	authorized.SetToken(s.token)
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

// renew renews the token if its renewal is due. If that fails, or extends the token so little that it will soon reach its maximum lifetime, it logs
// in again if it can.
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

// startRenewals schedules the first renewal of a new token. A time to live of zero means that it does not expire.
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

// loginFailures spaces logins that fail. The zero loginFailures has none.
type loginFailures struct {
	sent    map[string]any // the credentials of the last failure
	err     error
	again   time.Time
	backoff wait.Backoff
}

// note records a failure. locks means that the store locks credentials that it refuses too often.
func (f *loginFailures) note(sent map[string]any, err error, locks bool, now time.Time) {
	if f.err == nil || !maps.Equal(f.sent, sent) {
		*f = loginFailures{sent: sent, backoff: wait.Backoff{Duration: minLogin, Factor: 6, Jitter: 0.1, Steps: math.MaxInt, Cap: maxLogin}}
		if locks {
			f.backoff.Cap = maxRefused
		}
	}
	f.err = err
	switch answered := code(err); {
	case rejected(answered):
		f.again = now.Add(f.backoff.Step())
	case answered >= http.StatusBadRequest && answered < http.StatusInternalServerError:
		f.again = now.Add(minLogin) // A rate limit, for example. The credentials were not judged, so nothing is locked.
	default:
		f.again = now.Add(unanswered)
	}
}
