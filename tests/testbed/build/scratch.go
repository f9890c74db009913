package build

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// scratch is a folder for the build of a server that is kept as a binary alone: the modules that are downloaded for it and the packages that are
// compiled for it are in the folder, which is removed. They take gigabytes, and nobody needs them again.
type scratch struct {
	// env are the variables with which the go command works in the folder.
	env    []string
	dir    string
	unlock func()
}

// newScratch makes a scratch folder. What Go's caches already have is used from there.
func newScratch(ctx context.Context) (_ *scratch, err error) {
	parent, err := cacheDir("scratch")
	if err != nil {
		return nil, err
	}
	removeAbandoned(parent)
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	s := &scratch{dir: dir, unlock: unlock}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.useCaches(ctx); err != nil {
		s.remove()
		return nil, fmt.Errorf("use Go's caches: %w", err)
	}
	return s, nil
}

// useCaches sets env. A module in Go's cache is copied from there, and a compiled package is a hard link.
func (s *scratch) useCaches(ctx context.Context) error {
	settings := map[string]string{"GOCACHE": "", "GOMODCACHE": "", "GOPROXY": ""}
	for name := range settings {
		value, err := goCommand(ctx, ".", []string{"env", name})
		if err != nil {
			return err
		}
		settings[name] = value
	}
	modules, packages := filepath.Join(s.dir, "modules"), filepath.Join(s.dir, "packages")
	downloaded := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(settings["GOMODCACHE"], "cache", "download"))}
	s.env = []string{
		"CGO_ENABLED=0", "GOCACHE=" + packages, "GOMODCACHE=" + modules, "GOPROXY=" + downloaded.String() + "," + settings["GOPROXY"],
		"GOFLAGS=-buildvcs=false -modcacherw",
	}
	return linkPackages(settings["GOCACHE"], packages)
}

// linkPackages makes a folder with hard links to the compiled packages in another one, whose folders have names of two digits.
func linkPackages(from, to string) error {
	folders, err := filepath.Glob(filepath.Join(from, "[0-9a-f][0-9a-f]"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		linked := filepath.Join(to, filepath.Base(folder))
		files, err := os.ReadDir(folder)
		if err := errors.Join(err, os.MkdirAll(linked, 0o755)); err != nil {
			return err
		}
		for _, file := range files {
			// Without a link, as between two file systems, the package is compiled again.
			_ = os.Link(filepath.Join(folder, file.Name()), filepath.Join(linked, file.Name()))
		}
	}
	return nil
}

func (s *scratch) remove() {
	os.RemoveAll(s.dir)
	s.unlock()
}

// removeAbandoned removes the scratch folders of builds that were killed.
func removeAbandoned(parent string) {
	folders, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if unlock, free := tryLock(filepath.Join(folder, ".lock")); free {
			os.RemoveAll(folder)
			unlock()
		}
	}
}
