package testbed

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Repository is a Git repository with a single branch "main", served on loopback for reading.
type Repository struct {
	// Dir is the folder with the files of the next commit.
	Dir string
	// URL is the URL to clone it from.
	URL string
	git string
}

// NewRepository creates an empty repository, and serves it with "git http-backend" until the end of the test.
func NewRepository(t testing.TB, name string) *Repository {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	url, stop, err := serveGit(ctx, dir)
	if err != nil {
		t.Fatalf("serve git: %v", err)
	}
	t.Cleanup(stop)
	r := &Repository{Dir: filepath.Join(dir, name), URL: url + "/" + name + ".git", git: filepath.Join(dir, name+".git")}
	testkit.Must(t, os.MkdirAll(r.Dir, 0o755))
	testkit.Must(t, r.run(ctx, "init", "--quiet", "--initial-branch=main"))
	return r
}

// serveGit serves the repositories in a folder, until stop is called.
func serveGit(ctx context.Context, dir string) (url string, stop func(), err error) {
	path, err := process.Capture(exec.CommandContext(ctx, "git", "--exec-path"))
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", process.Address(0))
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
		// Before it clones, kustomize requests the folder of a repository as if it were a file, and git reports that it is
		// not.
		Stderr: io.Discard,
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // the error only says that stop has closed the listener
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // this is meant to cut off in-flight requests
		<-done
	}, nil
}

// Commit commits all files, even if nothing has changed, and returns the name of the commit.
func (r *Repository) Commit(ctx context.Context, message string) (string, error) {
	if err := r.run(ctx, "add", "--all"); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	err := r.run(ctx, "-c", "user.name=testbed", "-c", "user.email=testbed@example.com", "-c", "commit.gpgsign=false",
		"commit", "--quiet", "--allow-empty", "--message="+message)
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	name, err := process.Capture(r.command(ctx, "rev-parse", "HEAD"))
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}

// Tag tags the last commit.
func (r *Repository) Tag(ctx context.Context, name string) error { return r.run(ctx, "tag", name) }

func (r *Repository) run(ctx context.Context, args ...string) error {
	if _, err := process.Capture(r.command(ctx, args...)); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "git", append([]string{"--git-dir", r.git, "--work-tree", r.Dir}, args...)...)
}
