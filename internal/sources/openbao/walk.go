package openbao

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The bounds of a mount whose secrets are read one by one. The bound of folders also applies to a mount that is scanned in parts, where each page
// of a folder counts as one.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
)

// walk lists the folders of a mount below a path of its API, such as metadata, and returns the paths of the secrets or roles in them. tolerate
// reports whether a folder that cannot be listed is skipped.
func walk(ctx context.Context, c *client, in engineMount, below string, tolerate func(error) bool) ([]string, error) {
	folders, paths, listed := []string{""}, []string(nil), 0
	var pages pager
	for len(folders) > 0 {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		list := func(after string) ([]string, error) {
			return c.list(ctx, in.namespace, in.path+"/"+below+"/"+folder, after)
		}
		err := pages.each(list, func(names []string) error {
			for _, name := range names {
				if strings.HasSuffix(name, "/") {
					folders = append(folders, folder+name)
				} else {
					paths = append(paths, folder+name)
				}
			}
			if listed++; listed+len(folders) > maxFolders || len(paths) > maxSecrets {
				return fmt.Errorf("%s: %w", in.path, errTooMany)
			}
			return nil
		})
		if err != nil && (folder == "" || errors.Is(err, errTooMany) || !tolerate(err)) {
			return nil, err
		}
	}
	return paths, nil
}
