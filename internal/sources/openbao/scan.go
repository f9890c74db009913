package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
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

// mountScan reads a mount once. The mount is scanned in one request. If the answer is too large, each of its folders is scanned, and a folder that
// is itself too large is listed page by page. So no more than maxScanned secrets are held at a time.
type mountScan struct {
	*scanner
	in    engineMount
	found func(Observation)
	// folders has the folders that are still to be read.
	folders []string
	pages   pager
	listed  int
	// malformed is the first error about a single secret.
	malformed error
}

func (s *mountScan) run(ctx context.Context) error {
	for len(s.folders) > 0 {
		folder := s.folders[len(s.folders)-1]
		s.folders = s.folders[:len(s.folders)-1]
		err := s.readAtOnce(ctx, folder)
		if errors.Is(err, errNoScan) {
			err = s.readPages(ctx, folder)
		}
		if err != nil && (folder == "" || errors.Is(err, errTooMany) || !s.tolerate(err)) {
			return err
		}
	}
	return s.malformed
}

// readAtOnce reads a folder and the folders below it. It returns errNoScan if one request is not enough.
func (s *mountScan) readAtOnce(ctx context.Context, folder string) error {
	mount, this := scanRequest{in: s.in, how: scanMount}, scanRequest{s.in, scanFolder, folder}
	if s.refused(mount) || s.refused(this) {
		return errNoScan
	}
	secrets, got, err := s.client.scan(ctx, s.in, folder)
	switch {
	case errors.Is(err, errNotThere) && !got.warned:
		// The folder is empty.
		return nil
	case errors.Is(err, errTooLong) || err != nil && unscannable(err) && folder != "":
		s.refuse(this)
		return errNoScan
	case err != nil && unscannable(err):
		s.refuse(mount)
		s.log.InfoContext(ctx, "mount cannot be scanned, listing it instead", "mount", s.in.path)
		return errNoScan
	case err != nil:
		return err
	}
	s.observe(folder, secrets, got)
	return nil
}

// readPages reads a folder page by page, and queues the folders in it to be read later. It returns errNoScan if the mount has no such list.
func (s *mountScan) readPages(ctx context.Context, folder string) error {
	mount := scanRequest{in: s.in, how: listMount}
	if s.refused(mount) {
		return errNoScan
	}
	var secrets []scannedSecret
	var got reply
	err := s.pages.each(func(after string) (names []string, err error) {
		secrets, got, err = s.client.details(ctx, s.in, folder, pageAfter(after))
		for _, one := range secrets {
			names = append(names, one.path)
		}
		if errors.Is(err, errNotThere) && folder+after != "" {
			err = nil // There are no more names, or the folder no longer exists.
		}
		return names, err
	}, func(names []string) error {
		s.observe(folder, secrets, got)
		for _, name := range names {
			if strings.HasSuffix(name, "/") {
				s.folders = append(s.folders, folder+name)
			}
		}
		if s.listed++; s.listed+len(s.folders) > maxFolders {
			return fmt.Errorf("%s: %w", s.in.path, errTooMany)
		}
		return nil
	})
	if err != nil && s.listed == 0 && unscannable(err) {
		s.refuse(mount)
		return errNoScan
	}
	return err
}

// observe reports the secrets in an answer about a folder.
func (s *mountScan) observe(folder string, secrets []scannedSecret, got reply) {
	for _, one := range secrets {
		switch {
		case strings.HasSuffix(one.path, "/"):
		case one.ok:
			o := s.origin.ofReply(s.in, folder+one.path, got)
			o.Version, o.State, o.At = one.version, one.state, one.at
			s.found(o)
		case s.malformed == nil:
			s.malformed = fmt.Errorf("metadata in %s: %w", s.in.path, errAnswer)
		}
	}
}
