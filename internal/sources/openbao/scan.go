package openbao

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"time"
)

// scanAgain is how long a refused kind of request is avoided and replaced by another one.
const scanAgain = time.Hour

// scanner reads the metadata of a whole mount, for many secrets per request, which OpenBao supports.
type scanner struct {
	origin origin
	client *client
	// tolerate reports whether a folder that cannot be read is skipped.
	tolerate func(err error) bool
	log      *slog.Logger
	// after has the times at which refused kinds of requests are tried again.
	after map[scanRequest]time.Time
}

// scanRequest is a kind of request about a mount.
type scanRequest struct {
	in  engineMount
	how scanHow
	// folder is set for scanFolder.
	folder string
}

// scanHow is how secrets are requested.
type scanHow int

const (
	scanMount  scanHow = iota // all scans of a mount
	scanFolder                // the scan of one folder and of the folders below it
	listMount                 // all lists of a mount
)

func newScanner(g origin, c *client, tolerate func(error) bool, log *slog.Logger) *scanner {
	return &scanner{origin: g, client: c, tolerate: tolerate, log: log, after: map[scanRequest]time.Time{}}
}

// scan calls found for each secret of the mount. It returns errNoScan if the mount has to be read in another way.
func (s *scanner) scan(ctx context.Context, in engineMount, found func(Observation)) error {
	now := s.client.now()
	maps.DeleteFunc(s.after, func(_ scanRequest, again time.Time) bool { return !now.Before(again) })
	run := mountScan{scanner: s, in: in, found: found, folders: []string{""}}
	return run.run(ctx)
}

// refused reports whether the store has refused such a request within scanAgain.
func (s *scanner) refused(r scanRequest) bool { return s.client.now().Before(s.after[r]) }

// refuse records that the store has refused such a request.
func (s *scanner) refuse(r scanRequest) { s.after[r] = s.client.now().Add(scanAgain) }

// unscannable reports whether the error means that the store does not support such a request, or that the token's policy does not allow it.
func unscannable(err error) bool {
	switch code(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return true
	}
	return errors.Is(err, errNotThere) || errors.Is(err, errAnswer) || errors.Is(err, errTooLong)
}
