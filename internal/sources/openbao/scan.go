package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// scanAgain is how long a mount that cannot be scanned is listed instead.
const scanAgain = time.Hour

// scanner reads the metadata of a whole mount in one request, which OpenBao can answer.
type scanner struct {
	origin origin
	client *client
	log    *slog.Logger
	after  map[engineMount]time.Time // when a mount that could not be scanned is tried again
}

// scan calls found for each secret of the mount. It returns errNoScan if the mount cannot be scanned.
func (s *scanner) scan(ctx context.Context, in engineMount, found func(Observation)) error {
	if s.client.now().Before(s.after[in]) {
		return errNoScan
	}
	secrets, got, err := s.client.scan(ctx, in)
	switch {
	case errors.Is(err, errNotThere) && !got.warned:
		// The mount is empty.
		return nil
	case err != nil && unscannable(err):
		s.after[in] = s.client.now().Add(scanAgain)
		s.log.InfoContext(ctx, "mount cannot be scanned, listing it instead", "mount", in.path)
		return errNoScan
	case err != nil:
		return err
	}
	var first error
	for _, one := range secrets {
		switch {
		case strings.HasSuffix(one.path, "/"):
		case one.ok:
			o := s.origin.ofReply(in, one.path, got)
			o.Version, o.State, o.At = one.version, one.state, one.at
			found(o)
		case first == nil:
			first = fmt.Errorf("metadata in %s: %w", in.path, errAnswer)
		}
	}
	return first
}

// unscannable reports whether the error means that the store or the token's policy has no scan.
func unscannable(err error) bool {
	switch code(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return true
	}
	return errors.Is(err, errNotThere) || errors.Is(err, errAnswer)
}
