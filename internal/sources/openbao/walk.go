package openbao

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The bounds of a mount that is read by asking for each of its secrets.
const (
	maxFolders = 10_000
	maxSecrets = 100_000
)

// walk lists the folders of a mount and reads the metadata of each secret in them. It gives the paths that it observed.
func (p *poller) walk(ctx context.Context, in mount) (map[string]bool, error) {
	folders, paths := []string{""}, []string(nil)
	for asked := 0; len(folders) > 0; asked++ {
		if asked == maxFolders || len(paths) > maxSecrets {
			return nil, fmt.Errorf("%s: %w", in.path, errTooMany)
		}
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		names, _, err := p.client.list(ctx, in.namespace, in.path+"/metadata/"+folder)
		if err != nil && (folder == "" || !p.partly(ctx, in, err)) {
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
	return p.each(ctx, in, paths)
}

// each reads secrets or roles of a mount and observes those that are there. It gives their paths.
func (p *poller) each(ctx context.Context, in mount, paths []string) (map[string]bool, error) {
	var mu sync.Mutex
	seen := make(map[string]bool, len(paths))
	err := p.forEach(ctx, in, paths, func(path string) error {
		o, err := p.readIn(ctx, in, path)
		if err != nil || o.State == Gone {
			return err
		}
		p.emit(ctx, o)
		mu.Lock()
		defer mu.Unlock()
		seen[path] = true
		return nil
	})
	return seen, err
}

// forEach calls f for each path of a mount, a few at a time, and gives an error of those where there was one. One path that
// may not be read costs only itself.
func (p *poller) forEach(ctx context.Context, in mount, paths []string, f func(path string) error) error {
	errs := make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			errs[i] = f(paths[i])
		}
	})
	worked := slices.Contains(errs, nil)
	for _, err := range errs {
		if err != nil && (!worked || !p.partly(ctx, in, err)) {
			return err
		}
	}
	return nil
}

// partly tells whether the error is of a part of the mount that we may not read. That is told, and the others go on.
func (p *poller) partly(ctx context.Context, in mount, err error) bool {
	if !final(err) {
		return false
	}
	p.status.failed(ctx, p.log, "a part of "+in.path, err)
	return true
}
