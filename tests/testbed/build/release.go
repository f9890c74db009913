package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ErrNoCommit is returned if a commit is not in this clone, which may be shallow, or if this is not a clone.
var ErrNoCommit = errors.New("the commit is not in this clone")

// Commit builds main packages of another commit of the root module, such as "./cmd/actuator" of "HEAD~1", and returns the paths of
// the binaries in the same order. They are built as by [Program] without the race detector, so that only packages of this module that differ are
// compiled again. They are kept until those of another commit are built.
func Commit(ctx context.Context, revision string, pkgs ...string) ([]string, error) {
	root, err := moduleDir(ctx, ".", modulePath)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", revision, err)
	}
	commit, err := process.Capture(exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--verify", "--quiet", revision+"^{commit}"))
	if err != nil || len(commit) < 12 {
		return nil, fmt.Errorf("build %s: %w", revision, ErrNoCommit)
	}
	dir, err := programsDir(root, "commit")
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	built := filepath.Join(dir, string(commit[:12]))
	var binaries []string
	for _, pkg := range pkgs {
		binaries = append(binaries, filepath.Join(built, path.Base(pkg)))
	}
	if !slices.ContainsFunc(binaries, func(binary string) bool { return !isFile(binary) }) {
		return binaries, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("build %s: %w", revision, err)
	}
	// Use the same folder for every commit, so that a package that is the same in both is compiled once.
	source := filepath.Join(dir, "source")
	if err := export(ctx, root, string(commit[:12]), source); err != nil {
		return nil, fmt.Errorf("build %s: %w", revision, err)
	}
	if err := os.MkdirAll(built, 0o755); err != nil {
		return nil, fmt.Errorf("build %s: %w", revision, err)
	}
	for i, pkg := range pkgs {
		if err := goBuild(ctx, nil, source, binaries[i], pkg, append(buildFlags(), "-ldflags=-s -w"), "CGO_ENABLED=0"); err != nil {
			return nil, fmt.Errorf("build %s of %s: %w", pkg, revision, err)
		}
	}
	return binaries, nil
}

// export writes the files of a commit to a folder.
func export(ctx context.Context, root, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(dir, "source.tar")
	defer os.Remove(archive)
	if _, err := process.Capture(exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", "--output="+archive, commit)); err != nil {
		return err
	}
	_, err := process.Capture(exec.CommandContext(ctx, "tar", "-x", "-f", archive, "-C", dir))
	return err
}
