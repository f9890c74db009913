package openbao

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/vault/api"
)

var (
	// errAnswer means that an answer of the store does not have the documented form.
	errAnswer = errors.New("malformed answer")
	// errNotThere means that nothing is at the path.
	errNotThere = errors.New("path not found")
	// errNoMount means that no mount contains the path, among those that the token may see.
	errNoMount = errors.New("no such mount among those that the token may see")
	// errEngine means that the mount has a secrets engine whose secrets cannot be read.
	errEngine = errors.New("neither KV nor static roles")
	// errUnversioned means that the mount is KV v1, which has no metadata, so only the audit log shows its changes.
	errUnversioned = errors.New("the mount is KV v1, which has no metadata to poll: only the audit log shows its changes")
	// errTooLong means that an answer has more secrets than may be in memory at a time.
	errTooLong = errors.New("too many secrets in one answer")
	// errTooMany means that a mount has more secrets than one poll may request.
	errTooMany = errors.New("too many secrets to request one by one: poll by reference, or grant scan and list on detailed-metadata")
	// errPath means that the path cannot be part of a request.
	errPath = errors.New("malformed path")
	// errSilent means that no request was made, because the store did not answer the last ones.
	errSilent = errors.New("the store has stopped answering")
	// errUsedUp means that the configured token had a limited number of uses.
	errUsedUp = errors.New("the token is used up, because the number of its uses is limited: want one without num_uses")
	// errNotPolled means that the first poll of a store has not ended yet.
	errNotPolled = errors.New("not polled yet")
)

// tokenError means that there is no token for a request. It does not depend on the request.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// statusError is an answer of the store with an error status. Its text contains no part of the request.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the store answered %d: %s", e.code, e.message), ": ")
}

// maxMessage is the maximum length of the store's error text in our own, in bytes.
const maxMessage = 200

// plain turns an error of the API client into one line, without the body of an answer that is not from the store's API, such as a proxy's error page.
func plain(err error) error {
	response, ok := errors.AsType[*api.ResponseError](err)
	if !ok {
		return err
	}
	refusal := &statusError{code: response.StatusCode}
	if !response.RawError && len(response.Errors) > 0 {
		refusal.message = strings.Join(strings.Fields(response.Errors[0]), " ")
		refusal.message = refusal.message[:min(len(refusal.message), maxMessage)]
	}
	return refusal
}

// code returns the status of the store's answer, or 0.
func code(err error) int {
	if refusal, ok := errors.AsType[*statusError](err); ok {
		return refusal.code
	}
	return 0
}

// kind classifies an error in one word. Failures of the same kind are logged once.
func kind(err error) string {
	for sentinel, kind := range map[error]string{
		errUnversioned: "unversioned", errNoMount: "no-mount", errEngine: "engine", errTooMany: "too-many", errAnswer: "malformed",
		errUsedUp: "used-up",
	} {
		if errors.Is(err, sentinel) {
			return kind
		}
	}
	_, network := errors.AsType[net.Error](err)
	switch answered := code(err); {
	case answered == http.StatusForbidden || answered == http.StatusUnauthorized:
		return "forbidden"
	case answered == http.StatusServiceUnavailable:
		return "sealed-or-standby"
	case answered != 0:
		return fmt.Sprintf("status-%d", answered)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSilent) || network:
		return "unreachable"
	}
	return "other"
}

// hasKindOf reports whether any of the errors is of the same kind as err.
func hasKindOf(errs []error, err error) bool {
	return slices.ContainsFunc(errs, func(other error) bool { return kind(other) == kind(err) })
}

// down reports whether the error means that the whole store does not answer, so that every request fails.
func down(err error) bool {
	_, lacksToken := errors.AsType[*tokenError](err)
	return lacksToken || slices.Contains([]string{"unreachable", "sealed-or-standby"}, kind(err))
}

// final reports whether retries are useless until the configuration changes. A request that failed without a token is always retried.
func final(err error) bool {
	if _, lacksToken := errors.AsType[*tokenError](err); lacksToken {
		return false
	}
	final := []string{"unversioned", "no-mount", "engine", "too-many", "forbidden"}
	return slices.Contains(final, kind(err)) || errors.Is(err, errPath) || rejected(code(err))
}

// rejected reports whether a status means that the request itself is wrong, for example because its namespace does not exist. A request that was too
// slow, that exceeded a rate limit, or that a standby cannot answer yet may still succeed.
func rejected(status int) bool {
	repeatable := []int{http.StatusRequestTimeout, http.StatusPreconditionFailed, http.StatusTooEarly, http.StatusTooManyRequests}
	return status >= 400 && status < 500 && !slices.Contains(repeatable, status)
}
