package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scanAgain is how long a request that a store refused is not tried again.
const scanAgain = time.Hour

// scanWay is how a KV v2 mount is read: OpenBao returns the metadata of many secrets at once, if the token's policy allows it.
type scanWay struct {
	until     time.Time       // then everything is tried again
	noScan    bool            // the metadata in each folder is listed page by page
	listed    map[string]bool // so is that in these folders, which have too many secrets for one answer
	noDetails bool            // names are listed page by page, and each secret is read
}

func (p *poller) readSecrets(ctx context.Context, in engineMount, missing pathSet, skipped *skips) error {
	now, way := p.options.Now(), p.ways[in.name()]
	if way == nil || !now.Before(way.until) {
		way = &scanWay{until: now.Add(scanAgain), listed: map[string]bool{}}
		p.ways[in.name()] = way
	}
	if !way.noDetails {
		err := p.readDetails(ctx, in, way, missing, skipped)
		if err == nil || !unscannable(err) {
			return err
		}
		way.noDetails = true
	}
	return p.readListed(ctx, in, "metadata", "", missing, skipped)
}

// unscannable reports whether the store does not support such a request, the token's policy does not allow it, or the answer is too long.
func unscannable(err error) bool {
	switch code(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return true
	}
	return errors.Is(err, errNotThere) || errors.Is(err, errAnswer) || errors.Is(err, errTooLong)
}

// readDetails holds at most maxScanned secrets at a time.
func (p *poller) readDetails(ctx context.Context, in engineMount, way *scanWay, missing pathSet, skipped *skips) error {
	list := func(folder, after string) (names []string, err error) {
		if after == "" && !way.noScan && !way.listed[folder] {
			secrets, got, err := p.metadata.client.details(ctx, in, folder, url.Values{"scan": {"true"}})
			switch {
			case err == nil:
				p.observeAll(ctx, in, folder, secrets, got, missing)
				return nil, nil
			case errors.Is(err, errNotThere) && !got.warned:
				return nil, nil // The folder is empty.
			case !unscannable(err):
				return nil, err
			case folder == "" && !errors.Is(err, errTooLong):
				way.noScan = true
			default:
				way.listed[folder] = true
			}
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
			o := p.metadata.origin.of(in, path, got.asked, got.received)
			o.Version, o.State, o.At = one.version, one.state, one.at
			p.outlet.emitPolled(ctx, o)
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

// The bounds of a mount that is not scanned in one request. Each page of a folder counts as a folder.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
	listPage   = 5000 // names that are requested at a time; OpenBao reads all of the folder for each page, so pages are long
)

// pageAfter returns the parameters of a request for at most listPage names in a folder that come after the given one. Vault ignores all parameters
// except list, and answers with all names.
func pageAfter(name string) url.Values {
	query := url.Values{"list": {"true"}, "limit": {strconv.Itoa(listPage)}}
	if name != "" {
		query.Set("after", name)
	}
	return query
}

// walk lists the folders of a mount page by page, and calls found with the path of each secret or role in them. tolerate reports whether a folder
// that cannot be listed is skipped. A page may be shorter than requested, because a policy of OpenBao can limit it: the last one has no names.
func walk(in engineMount, list func(folder, after string) ([]string, error), found func(path string) error, tolerate func(error) bool) error {
	ignored := false // the store has ignored the parameters, so that each answer has all names
	for folders, pages := []string{""}, 0; len(folders) > 0; {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		for after := ""; after == "" || !ignored; pages++ {
			names, err := list(folder, after)
			if err != nil && (folder == "" || !tolerate(err)) {
				return err
			}
			all := len(names)
			names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
			ignored = ignored || len(names) < all
			if err != nil || len(names) == 0 {
				break
			}
			below, err := visit(folder, names, found)
			if err != nil {
				return err
			}
			folders = append(folders, below...)
			if pages+len(folders) >= maxFolders {
				return fmt.Errorf("%s: %w", in.path, errTooMany)
			}
			after = slices.Max(names)
		}
	}
	return nil
}

// visit calls found with the path of each secret or role that is named in a folder, and returns the paths of the folders.
func visit(folder string, names []string, found func(path string) error) (folders []string, err error) {
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			folders = append(folders, folder+name)
		} else if err := found(folder + name); err != nil {
			return nil, err
		}
	}
	return folders, nil
}
