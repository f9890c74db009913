package openbao

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a mount that is not scanned in one request. Each page of a folder counts as a folder.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
	// listPage is how many names of a folder are requested at a time. OpenBao reads all names of the folder for each page, so pages are long.
	listPage = 5000
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
// that cannot be listed is skipped.
func walk(in engineMount, list func(folder, after string) ([]string, error), found func(path string) error, tolerate func(error) bool) error {
	folders, listed := []string{""}, 0
	var pages pager
	for len(folders) > 0 {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		err := pages.each(func(after string) ([]string, error) { return list(folder, after) }, func(names []string) error {
			for _, name := range names {
				if strings.HasSuffix(name, "/") {
					folders = append(folders, folder+name)
				} else if err := found(folder + name); err != nil {
					return err
				}
			}
			if listed++; listed+len(folders) > maxFolders {
				return fmt.Errorf("%s: %w", in.path, errTooMany)
			}
			return nil
		})
		if err != nil && (folder == "" || errors.Is(err, errTooMany) || !tolerate(err)) {
			return err
		}
	}
	return nil
}

// pager reads folders page by page.
type pager struct {
	// ignored reports that the store ignores the parameters, so that each answer has all names: it has answered with names that do not come after
	// the requested one.
	ignored bool
}

// each calls take with the names of each page of a folder. Only a page without names is the last one: a page may be shorter than requested, because
// a policy of OpenBao can limit it.
func (p *pager) each(list func(after string) ([]string, error), take func(names []string) error) error {
	for after := ""; ; {
		names, err := list(after)
		if err != nil {
			return err
		}
		if after != "" {
			all := len(names)
			names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
			p.ignored = len(names) < all
		}
		if len(names) == 0 {
			return nil
		}
		if err := take(names); err != nil || p.ignored {
			return err
		}
		after = slices.Max(names)
	}
}
