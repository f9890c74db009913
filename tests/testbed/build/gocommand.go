package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// tag is a build tag of everything that is built, as it is one of a release: see TAGS in the Makefile.
const tag = "grpcnotrace"

// buildFlags returns the flags of everything that is built, the servers and the programs: with the same flags, and the same versions of what they
// import, each package is compiled once for all of them.
func buildFlags(tags ...string) []string {
	return []string{"-trimpath", "-tags=" + strings.Join(append([]string{tag}, tags...), ",")}
}

// goBuild builds a package to a path. The binary is renamed into place, so that the path never has an incomplete one, and a
// program that runs from it is not disturbed. What the go command says goes to log, unless that is nil.
func goBuild(ctx context.Context, log io.Writer, dir, path, pkg string, args []string, env ...string) error {
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer os.Remove(temp)
	// If the existing binary is what it would build, the go command keeps it, which saves the linking.
	if err := copyFile(path, temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the binary: %w", err)
	}
	args = append([]string{"build", "-o", temp}, args...)
	if _, err := goLogged(ctx, log, dir, append(args, pkg), env...); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// moduleDir returns the folder with a module's source, as seen from the module in dir.
func moduleDir(ctx context.Context, dir, module string, env ...string) (string, error) {
	out, err := goCommand(ctx, dir, []string{"list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module}, env...)
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
	return goLogged(ctx, nil, dir, args, env...)
}

// goLogged is like goCommand, and copies what the go command says to a log, unless that is nil.
func goLogged(ctx context.Context, log io.Writer, dir string, args []string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Stderr = log
	// Setting GOFLAGS, even without a new flag, overrides those of the environment and of "go env -w": the -race of a test
	// run would otherwise build every server a second time.
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off"), env...)
	out, err := process.Capture(cmd)
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
