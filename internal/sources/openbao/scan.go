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

// scanWay is the method of reading a KV v2 mount: OpenBao returns the metadata of many secrets at once, if the token's policy allows it.
type scanWay struct {
	until     time.Time       // when everything is tried again
	listed    map[string]bool // folders that cannot be scanned in one answer: their metadata is listed page by page
	noDetails bool            // names are listed page by page, and each secret is read
}

func (r *mountRead) readSecrets(ctx context.Context) error {
	now, way := r.options.Now(), r.ways[r.in.name()]
	if way == nil || !now.Before(way.until) {
		way = &scanWay{until: now.Add(scanAgain), listed: map[string]bool{}}
		r.ways[r.in.name()] = way
	}
	if !way.noDetails {
		err := r.readDetails(ctx, way)
		if err == nil || !unscannable(err) {
			return err
		}
		way.noDetails = true
	}
	return r.readListed(ctx)
}

// unscannable reports whether the store does not support such a request, the token's policy does not allow it, or the answer is too long.
func unscannable(err error) bool {
	switch code(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return true
	}
	return errors.Is(err, errNotThere) || errors.Is(err, errAnswer) || errors.Is(err, errTooLong)
}

// readDetails scans the mount, or else those of its folders that fit into one answer. It has at most maxScanned secrets in memory at a time.
func (r *mountRead) readDetails(ctx context.Context, way *scanWay) error {
	var list func(folder, after string) ([]string, error)
	list = func(folder, after string) (names []string, err error) {
		query, isScan := pageAfter(after), after == "" && !way.listed[folder]
		if isScan {
			query = url.Values{"scan": {"true"}}
		}
		secrets, got, err := r.metadata.client.details(ctx, r.in, folder, query)
		switch {
		case errors.Is(err, errNotThere) && (folder+after != "" || isScan && !got.warned):
			return nil, nil // The names are complete, or the folder is empty or does not exist any more.
		case isScan && unscannable(err):
			way.listed[folder] = true
			return list(folder, after)
		case err != nil:
			return nil, err
		}
		r.skipped.read.asked += len(secrets)
		r.observeAll(ctx, folder, secrets, got)
		if !isScan { // A scan includes the folders.
			for _, one := range secrets {
				names = append(names, one.path)
			}
		}
		return names, nil
	}
	return r.walk(list, func(string) error { return nil })
}

// observeAll observes the secrets in an answer about a folder, and removes them from missing. Those with malformed metadata are read alone later.
func (r *mountRead) observeAll(ctx context.Context, folder string, secrets []scannedSecret, got reply) {
	for _, one := range secrets {
		path := folder + one.path
		switch {
		case strings.HasSuffix(path, "/"):
		case !one.ok:
			r.missing.Insert(path)
		case one.state != Gone:
			r.missing.Delete(path)
			o := r.config.observation(r.in, path, got.asked, got.received)
			o.Version, o.State, o.At = one.version, one.state, one.at
			r.outlet.emitPolled(ctx, o)
		}
	}
}

// readListed reads each secret or role that the mount lists, and removes it from missing.
func (r *mountRead) readListed(ctx context.Context) error {
	var paths []string
	list := func(folder, after string) ([]string, error) {
		return r.metadata.client.list(ctx, r.in.namespace, r.in.path+"/"+r.at.list+"/"+folder, after)
	}
	err := r.walk(list, func(name string) error {
		if len(paths) == maxSecrets {
			return fmt.Errorf("%s: %w", r.in.path, errTooMany)
		}
		paths = append(paths, r.at.secret+name)
		r.missing.Delete(r.at.secret + name)
		return nil
	})
	if err != nil {
		return err
	}
	errs := r.observeEach(ctx, paths)
	r.skipped.read.add(errs...)
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return errs[0]
	}
	return r.skipped.rest(errs)
}

// These limit a mount that is not scanned in one request. Each page of a folder counts as a folder.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
	listPage   = 5000 // names in one request; OpenBao reads the whole folder for each page, so pages are long
)

// pageAfter returns the parameters of a request for at most listPage names in a folder that come after the given one. Vault ignores all parameters
// except list, and returns all names.
func pageAfter(name string) url.Values {
	query := url.Values{"list": {"true"}, "limit": {strconv.Itoa(listPage)}}
	if name != "" {
		query.Set("after", name)
	}
	return query
}

// walk lists the folders of the mount page by page, and calls found with the path of each secret or role in them. It skips folders that the token may
// not list. A page may be shorter than requested, because a policy of OpenBao can limit it: the last one has no names.
func (r *mountRead) walk(list func(folder, after string) ([]string, error), found func(path string) error) error {
	ignored := false // the store has ignored the parameters and returns all names
	for folders, pages := []string{""}, 0; len(folders) > 0; {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		for after := ""; after == "" || !ignored; pages++ {
			names, err := list(folder, after)
			if failed := r.skipped.noteList(folder, after, err); failed != nil {
				return failed
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
				return fmt.Errorf("%s: %w", r.in.path, errTooMany)
			}
			after = slices.Max(names)
		}
	}
	return nil
}

// visit calls found with the path of each secret or role in a folder, and returns the paths of its folders.
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
