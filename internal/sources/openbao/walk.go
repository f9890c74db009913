package openbao

import (
	"context"
	"fmt"
	"strings"
)

// The bounds of a mount whose secrets are read one by one.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
)

// walk lists the folders of a mount below a path of its API, such as metadata, and returns the paths of what is in them. tolerate reports
// whether a folder that cannot be listed is skipped.
func walk(ctx context.Context, c *client, in engineMount, below string, tolerate func(error) bool) ([]string, error) {
	folders, paths := []string{""}, []string(nil)
	for listed := 0; len(folders) > 0; listed++ {
		if listed == maxFolders || len(paths) > maxSecrets {
			return nil, fmt.Errorf("%s: %w", in.path, errTooMany)
		}
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		names, err := c.list(ctx, in.namespace, in.path+"/"+below+"/"+folder)
		if err != nil && (folder == "" || !tolerate(err)) {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "/") {
				folders = append(folders, folder+name)
			} else {
				paths = append(paths, folder+name)
			}
		}
	}
	return paths, nil
}
