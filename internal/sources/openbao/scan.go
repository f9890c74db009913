package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// scanAgain is how long a mount is read in another way after the store refused one.
const scanAgain = time.Hour

// The ways to read a KV v2 mount, in the order in which they are tried.
const (
	scanMount   = iota // the metadata of all secrets in one answer
	listDetails        // the metadata of the secrets in each folder, in one answer or page by page
	listNames          // the names in each folder, and the metadata of each secret
)

// scanWay is the first way that a store has not refused for a mount.
type scanWay struct {
	way   int
	until time.Time // then all of them are tried again
	// large has the folders that are listed page by page. It is nil if none is scanned.
	large map[string]bool
}

// readSecrets reads the secrets of a KV v2 mount in the first way that the store supports and the token's policy allows. Only OpenBao has the first two.
func (p *poller) readSecrets(ctx context.Context, in engineMount, missing pathSet, skipped *skips) error {
	way, now := scanMount, p.options.Now()
	if last := p.ways[in.name()]; now.Before(last.until) {
		way = last.way
	}
	for ; way < listNames; way++ {
		scan := p.scanMount
		if way == listDetails {
			scan = p.listDetails
		}
		err := scan(ctx, in, missing, skipped)
		if err == nil || !unscannable(err) {
			return err
		}
		next := scanWay{way: way + 1, until: now.Add(scanAgain)}
		if way == scanMount && errors.Is(err, errTooLong) {
			next.large = map[string]bool{"": true}
		}
		p.ways[in.name()] = next
	}
	return p.readListed(ctx, in, "metadata", "", missing, skipped)
}

// unscannable reports whether the error means that the store does not support such a request, that the token's policy does not allow it, or that
// the answer is too long.
func unscannable(err error) bool {
	switch code(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return true
	}
	return errors.Is(err, errNotThere) || errors.Is(err, errAnswer) || errors.Is(err, errTooLong)
}

func (p *poller) scanMount(ctx context.Context, in engineMount, missing pathSet, _ *skips) error {
	secrets, got, err := p.metadata.client.details(ctx, in, "", url.Values{"scan": {"true"}})
	switch {
	case errors.Is(err, errNotThere) && !got.warned:
		return nil // The mount is empty.
	case err != nil:
		return err
	}
	p.observeAll(ctx, in, "", secrets, got, missing)
	return nil
}

// listDetails holds at most maxScanned secrets, or a page of them, at a time.
func (p *poller) listDetails(ctx context.Context, in engineMount, missing pathSet, skipped *skips) error {
	large := p.ways[in.name()].large
	list := func(folder, after string) (names []string, err error) {
		if large != nil && after == "" && !large[folder] {
			secrets, got, err := p.metadata.client.details(ctx, in, folder, url.Values{"scan": {"true"}})
			if err == nil {
				p.observeAll(ctx, in, folder, secrets, got, missing)
			}
			if err == nil || !unscannable(err) {
				return nil, err
			}
			large[folder] = true
		}
		secrets, got, err := p.metadata.client.details(ctx, in, folder, pageAfter(after))
		switch {
		case errors.Is(err, errNotThere) && folder+after != "":
			return nil, nil // There are no more names, or the folder no longer exists.
		case err != nil:
			return nil, err
		}
		for _, one := range secrets {
			names = append(names, one.path)
		}
		p.observeAll(ctx, in, folder, secrets, got, missing)
		return names, nil
	}
	return walk(in, list, func(string) error { return nil }, skipped.tolerate)
}

// observeAll observes the secrets in an answer about a folder, and removes them from missing. One with malformed metadata is to be read alone.
func (p *poller) observeAll(ctx context.Context, in engineMount, folder string, secrets []scannedSecret, got reply, missing pathSet) {
	for _, one := range secrets {
		path := folder + one.path
		switch {
		case strings.HasSuffix(path, "/"):
		case !one.ok:
			missing[path] = struct{}{}
		case one.state != Gone:
			delete(missing, path)
			o := p.metadata.origin.ofReply(in, path, got)
			o.Version, o.State, o.At = one.version, one.state, one.at
			p.outlet.emit(ctx, o)
		}
	}
}

// readListed reads what is listed below a path of a mount's API, and removes it from missing. The names that are listed have the prefix in paths.
func (p *poller) readListed(ctx context.Context, in engineMount, below, prefix string, missing pathSet, skipped *skips) error {
	var paths []string
	err := walk(in, func(folder, after string) ([]string, error) {
		return p.metadata.client.list(ctx, in.namespace, in.path+"/"+below+"/"+folder, after)
	}, func(name string) error {
		if len(paths) == maxSecrets {
			return fmt.Errorf("%s: %w", in.path, errTooMany)
		}
		paths = append(paths, prefix+name)
		delete(missing, prefix+name)
		return nil
	}, skipped.tolerate)
	if err != nil {
		return err
	}
	errs := p.readEach(ctx, paths, p.observe(ctx, in))
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return errs[0]
	}
	return skipped.rest(errs)
}
