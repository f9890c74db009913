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
	"slices"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed/process"
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
			_, err = Binary(ctx, log, name)
		}
	}
	return errors.Join(err, <-beside)
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

func buildServer(ctx context.Context, log io.Writer, name string, s server, dir string) (err error) {
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	if isFile(path) {
		return nil // another process built it while this one waited for the lock
	}
	root, err := moduleDir(ctx, ".", modulePath)
	if err != nil {
		return err
	}
	tools := filepath.Join(root, "tests", "tools", s.tools)
	if s.program == "" || !isFile(filepath.Join(dir, s.program)) {
		built := tell(log, s.title(name), s.estimate)
		defer func() { built(err) }()
	}
	if err := extract(ctx, s, tools, dir); err != nil {
		return err
	}
	switch {
	case s.pkg == "":
		return os.WriteFile(path, nil, 0o600) // this marks the folder as complete
	case s.program == "":
		return compile(ctx, s, tools, path)
	}
	if program := filepath.Join(dir, s.program); !isFile(program) {
		if err := compile(ctx, s, tools, program); err != nil {
			return err
		}
	}
	return os.Symlink(s.program, path)
}

// extract copies the additional files of a server to the folder of its binary.
func extract(ctx context.Context, s server, tools, dir string) error {
	if s.extract == nil {
		return nil
	}
	// Building the server would download its source, too, but only later.
	if _, err := goCommand(ctx, tools, []string{"mod", "download", s.module}); err != nil {
		return err
	}
	module, err := moduleDir(ctx, tools, s.module)
	if err != nil {
		return err
	}
	return s.extract(module, dir)
}

func compile(ctx context.Context, s server, tools, path string) error {
	args := []string{"-mod=readonly", "-trimpath", "-tags=" + s.tags, "-ldflags=-s -w" + s.flags}
	return goBuild(ctx, tools, path, s.pkg, args, "CGO_ENABLED=0")
}

// goBuild builds a package to a path. The binary is renamed into place, so that the path never has an incomplete one, and a
// program that runs from it is not disturbed.
func goBuild(ctx context.Context, dir, path, pkg string, args []string, env ...string) error {
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer os.Remove(temp)
	// If the existing binary is what it would build, the go command keeps it, which saves the linking.
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

// goCommand runs the go command and returns its output.
func goCommand(ctx context.Context, dir string, args []string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Setting GOFLAGS, even without a new flag, overrides those of the environment and of "go env -w": the -race of a test
	// run would otherwise build every server a second time.
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
