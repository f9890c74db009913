package openbao

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// minLogin is the shortest time between two logins without a known need, and maxLogin the longest delay after a failed one.
	minLogin = 10 * time.Second
	maxLogin = time.Minute
	// maxRefused is the longest delay after an AppRole login that the store refused. Five refused logins lock the role for 15 minutes, and the count
	// is reset after 15 minutes without one, so the delay exceeds that after at most four.
	maxRefused = 16 * time.Minute
	unanswered = time.Second // the delay after a login without a decision of the store
)

// logIn requests a token, or returns the error of the last attempt if it is too early for another one.
func (s *session) logIn(ctx context.Context) error {
	path, data, err := s.auth.credentials()
	if err != nil {
		return err
	}
	if f := &s.refused; f.err != nil && s.now().Before(f.again) && maps.Equal(f.sent, data) {
		return f.err // Other credentials may succeed.
	}
	s.loginTried = s.now()
	granted, err := s.requestToken(ctx, path, data)
	if err != nil {
		err = fmt.Errorf("logging in at %s: %w", path, err)
		if ctx.Err() == nil {
			s.refused.note(data, err, s.auth.AppRole != nil, s.now())
		}
		return err
	}
	s.refused = loginFailures{}
	s.token = granted.ClientToken
	s.startRenewals(time.Duration(granted.LeaseDuration) * time.Second)
	s.limit, s.left = int(granted.NumUses), int(granted.NumUses)
	return nil
}

// grant is the answer to a login. The API client does not decode the number of uses.
type grant struct {
	ClientToken   string  `json:"client_token"`
	LeaseDuration integer `json:"lease_duration"` // in seconds
	NumUses       integer `json:"num_uses"`       // zero: unlimited
}

func (s *session) requestToken(ctx context.Context, path string, data map[string]any) (grant, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	request := s.requests.NewRequest(http.MethodPut, "/v1/"+path)
	if err := request.SetJSONBody(data); err != nil {
		return grant{}, err
	}
	//nolint:staticcheck // Logical().WriteRaw cancels its context before the answer is read, and loses the body at a redirect
	response, err := s.requests.RawRequestWithContext(ctx, request)
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil {
		return grant{}, plain(err)
	}
	var answer struct {
		Auth grant `json:"auth"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer)
	if err != nil || answer.Auth.ClientToken == "" {
		return grant{}, errAnswer // The decoder's error may quote the answer.
	}
	return answer.Auth, nil
}

// loginFailures spaces failed logins. The zero value has none.
type loginFailures struct {
	sent    map[string]any // the credentials of the last failure
	err     error
	again   time.Time
	backoff wait.Backoff
}

// note records a failure. Locks means that the store locks credentials that it has refused too often.
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
		f.again = now.Add(minLogin) // The store did not judge the credentials, for example because of a rate limit, so nothing is locked.
	default:
		f.again = now.Add(unanswered)
	}
}
