package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// modulePath is the module that this package and its tools belong to.
const modulePath = "github.com/keyturn/keyturn"

// All builds the named servers that are not in the cache yet, one after the other; without names, all servers. Progress goes to log. Two
// processes that want the same server build it once.
func All(ctx context.Context, log io.Writer, names ...string) error {
	if len(names) == 0 {
		names = serverNames()
	}
	for _, name := range names {
		if _, err := Binary(ctx, log, name); err != nil {
			return err
		}
	}
	return nil
}

// Binary returns the path of the named server's binary: from KUBEBUILDER_ASSETS, or from the cache folder, or built
// into it now, with progress to log.
func Binary(ctx context.Context, log io.Writer, name string) (string, error) {
	s, err := findServer(name)
	if err != nil {
		return "", err
	}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if path := filepath.Join(assets, name); isFile(path) {
			return path, nil
		}
	}
	dir, err := cacheDir(name + "-" + s.version + s.revision)
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

func buildServer(ctx context.Context, log io.Writer, name string, s server, dir string) error {
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	if isFile(path) {
		return nil // Another process built it while this one waited for the lock.
	}
	root, err := moduleDir(ctx, ".", modulePath)
	if err != nil {
		return err
	}
	tools := filepath.Join(root, "tests", "tools", s.tools)

	start := time.Now()
	fmt.Fprintf(log, "testbed: building %s %s (once, about %s)\n", name, s.version, s.estimate)
	if s.extract != nil {
		// Building the server would download its source too, but later.
		if _, err := goCommand(ctx, tools, []string{"mod", "download", s.module}); err != nil {
			return err
		}
		module, err := moduleDir(ctx, tools, s.module)
		if err != nil {
			return err
		}
		if err := s.extract(module, dir); err != nil {
			return err
		}
	}
	if s.pkg == "" {
		return os.WriteFile(path, nil, 0o600) // It says that the rest is there.
	}
	args := []string{"-mod=readonly", "-trimpath", "-tags=" + s.tags, "-ldflags=-s -w" + s.flags}
	if err := goBuild(ctx, tools, path, s.pkg, args, "CGO_ENABLED=0"); err != nil {
		return err
	}
	fmt.Fprintf(log, "testbed: built %s %s in %.0fs\n", name, s.version, time.Since(start).Seconds())
	return nil
}

// goBuild builds a package to a path. The binary is renamed into place, so that the path never holds half of one, and
// a program that is running from it goes on undisturbed.
func goBuild(ctx context.Context, dir, path, pkg string, args []string, env ...string) error {
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer os.Remove(temp)
	// What is there already and is what it would build, the go tool leaves as it is: that saves the linking.
	if err := copyFile(path, temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the binary: %w", err)
	}
	args = append([]string{"build", "-o", temp}, args...)
	if _, err := goCommand(ctx, dir, append(args, pkg), env...); err != nil {
		return err
	}
	return os.Rename(temp, path)
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

// moduleDir returns the folder with a module's source, as seen from the module in dir.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	out, err := goCommand(ctx, dir, []string{"list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module})
	if err != nil {
		return "", err
	}
	if out == "" {
		return "", fmt.Errorf("module %s is not downloaded", module)
	}
	return out, nil
}

// goCommand runs the go tool and returns what it printed.
func goCommand(ctx context.Context, dir string, args []string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A value, though it says nothing new, keeps both the environment's GOFLAGS and those of "go env -w" out: the
	// -race of a test run would build every server a second time.
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off"), env...)
	out, err := process.Capture(cmd)
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
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
