package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// modulePath is the module that this package and its tools belong to.
const modulePath = "github.com/keyturn/keyturn"

// All builds the named servers that are not in the cache yet, one after the other; without names, all servers. A name such as
// "./cmd/actuator" is a main package of the root module, which is built concurrently with the servers, because linking uses only one
// processor. Progress goes to log. If two processes need the same server, it is built once.
func All(ctx context.Context, log io.Writer, names ...string) error {
	if len(names) == 0 {
		names = serverNames()
	}
	programs := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "./") })
	beside := make(chan error, 1)
	go func() { beside <- buildPrograms(ctx, programs) }()
	var err error
	for _, name := range names {
		if err == nil && !slices.Contains(programs, name) {
			err = buildOrExtract(ctx, log, name)
		}
	}
	return errors.Join(err, <-beside)
}

// buildOrExtract builds a server, and extracts the kinds of an operator that is not run.
func buildOrExtract(ctx context.Context, log io.Writer, name string) error {
	s, err := findServer(name)
	switch {
	case err != nil:
		return err
	case s.pkg == "":
		_, err = Kinds(ctx, name)
	default:
		_, err = Binary(ctx, log, name)
	}
	return err
}

func buildPrograms(ctx context.Context, programs []string) error {
	for _, pkg := range programs {
		if _, err := Program(ctx, pkg, false); err != nil {
			return err
		}
	}
	return nil
}

// Binary returns the path of the named server's binary, from KUBEBUILDER_ASSETS or from the cache folder. If necessary, it
// builds the server into the cache, with progress to log.
func Binary(ctx context.Context, log io.Writer, name string) (string, error) {
	if err := checkEnvironment(); err != nil {
		return "", err
	}
	s, err := findServer(name)
	if err != nil {
		return "", err
	}
	if assets := os.Getenv(assetsVariable); assets != "" {
		if path := filepath.Join(assets, name); isFile(path) {
			return path, nil
		}
	}
	dir, err := cacheDir(s.folder(name))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if isFile(path) {
		return path, nil
	}
	if err := buildServer(ctx, log, name, s, dir); err != nil {
		return "", fmt.Errorf("build %s %s: %w", name, s.version, err)
	}
	return path, nil
}

// Tool is [Binary] for a test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := Binary(t.Context(), os.Stderr, name)
	testkit.Must(t, err)
	return path
}

func buildServer(ctx context.Context, log io.Writer, name string, s server, dir string) error {
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	if isFile(path) {
		return nil // another process built it while this one waited for the lock
	}
	if s.program == "" {
		return buildApart(ctx, log, name, s, dir)
	}
	if program := filepath.Join(dir, s.program); !isFile(program) {
		if err := compile(ctx, log, name, s, program, []string{"CGO_ENABLED=0"}); err != nil {
			return err
		}
	}
	return os.Symlink(s.program, path)
}

// buildApart builds a server in a scratch folder. What the control plane compiles stays in Go's cache instead, because the programs share most of it.
func buildApart(ctx context.Context, log io.Writer, name string, s server, dir string) error {
	place, err := newScratch(ctx)
	if err != nil {
		return err
	}
	defer place.remove()
	fmt.Fprintf(log, "testbed: downloading %s\n", s.title(name))
	module, err := s.download(ctx, place)
	if err != nil {
		return err
	}
	if s.kinds != nil {
		if _, err := s.saveKinds(ctx, module, dir); err != nil {
			return err
		}
	}
	if s.extract != nil {
		if err := s.extract(module, dir); err != nil {
			return err
		}
	}
	if err := s.trim(ctx, module); err != nil {
		return err
	}
	return compile(ctx, log, name, s, filepath.Join(dir, name), place.env)
}

func compile(ctx context.Context, log io.Writer, name string, s server, path string, env []string) error {
	tools, err := s.toolsDir(ctx)
	if err != nil {
		return err
	}
	flags := append(buildFlags(s.tags...), "-mod=readonly")
	total, err := packagesToCompile(ctx, tools, s.pkg, flags, env)
	if err != nil {
		return err
	}
	built := newProgress(log, s.title(name), total)
	err = goBuild(ctx, built, tools, path, s.pkg, append(flags, "-v", "-ldflags=-s -w"+s.flags), env...)
	built.end(err)
	return err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func cacheDir(elem ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	dir := filepath.Join(append([]string{cache, "keyturn", "testbed"}, elem...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	return dir, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
