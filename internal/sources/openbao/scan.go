package openbao

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
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
	var scanned struct {
		KeyInfo map[string]*metadata `json:"key_info"`
	}
	got, err := s.client.get(ctx, in.namespace, in.path+"/detailed-metadata/", url.Values{"scan": {"true"}}, &scanned)
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
	for path, m := range scanned.KeyInfo {
		if strings.HasSuffix(path, "/") || m == nil {
			continue
		}
		o := s.origin.ofReply(in, path, got)
		if err := m.describe(&o, got); err == nil {
			found(o)
		} else if first == nil {
			first = err
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
