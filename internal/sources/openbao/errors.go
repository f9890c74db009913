package openbao

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/hashicorp/vault/api"
)

var (
	// errAnswer says that the store's answer is not what its API says.
	errAnswer = errors.New("the answer is malformed")
	// errNotThere says that there is nothing at the path.
	errNotThere = errors.New("not there")
	// errNoMount says that no mount that the token can see has the path.
	errNoMount = errors.New("no such mount among those that the token may see")
	// errEngine says that the mount is of another secrets engine than was expected.
	errEngine = errors.New("the mount is of another secrets engine")
	// errUnversioned says that the mount is KV v1, which has no metadata: it can be seen in the audit only.
	errUnversioned = errors.New("the mount is KV v1, which has no metadata to poll: only its audit tells of changes")
	// errTooMany says that a mount has more secrets than one poll may ask for.
	errTooMany = errors.New("too many secrets to ask for each: poll by reference, or grant scan on detailed-metadata")
	// errPath says that no request can be made of the path.
	errPath = errors.New("the path is malformed")
)

// statusError is an answer of the store with a status that is an error. Its text has nothing of what was asked for.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the store answered %d", e.code)
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// maxMessage is how much of the store's own words is repeated, in bytes.
const maxMessage = 200

// plain makes one line of an error of the client. Answers that are not of the store's API, such as a proxy's page, are not repeated.
func plain(err error) error {
	response, ok := errors.AsType[*api.ResponseError](err)
	if !ok {
		return err
	}
	status := &statusError{code: response.StatusCode}
	if !response.RawError && len(response.Errors) > 0 {
		status.message = strings.Join(strings.Fields(response.Errors[0]), " ")
		status.message = status.message[:min(len(status.message), maxMessage)]
	}
	return status
}

// code is the status of the store's answer, or 0.
func code(err error) int {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code
	}
	return 0
}

// kind is a word for an error: an error is told once for each kind.
func kind(err error) string {
	_, network := errors.AsType[net.Error](err)
	switch status := code(err); {
	case errors.Is(err, errUnversioned):
		return "unversioned"
	case errors.Is(err, errNoMount):
		return "no-mount"
	case errors.Is(err, errEngine):
		return "engine"
	case errors.Is(err, errTooMany):
		return "too-many"
	case errors.Is(err, errAnswer):
		return "malformed"
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return "forbidden"
	case status == http.StatusServiceUnavailable:
		return "sealed-or-standby"
	case status != 0:
		return fmt.Sprintf("status-%d", status)
	case errors.Is(err, context.DeadlineExceeded) || network:
		return "unreachable"
	}
	return "other"
}

// final tells whether asking again without another configuration is of no use.
func final(err error) bool {
	switch kind(err) {
	case "unversioned", "no-mount", "engine", "too-many", "forbidden":
		return true
	}
	return errors.Is(err, errPath)
}
