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
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// GitServer serves git repositories on loopback, for reading.
type GitServer struct {
	dir    string
	server *http.Server
	url    string
	done   chan struct{} // Closed when nothing is served any more.
}

// ServeGit serves the repositories that [GitServer.Repository] makes in a folder, by way of "git http-backend", until Stop.
func ServeGit(ctx context.Context, dir string) (*GitServer, error) {
	path, err := process.Capture(exec.CommandContext(ctx, "git", "--exec-path"))
	if err != nil {
		return nil, fmt.Errorf("serve git: %w", err)
	}
	listener, err := net.Listen("tcp", process.Address(0))
	if err != nil {
		return nil, fmt.Errorf("serve git: %w", err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
		// kustomize asks for the folder of a repository as if it were a file before it clones, and git says that it is none.
		Stderr: io.Discard,
	}
	s := &GitServer{
		dir: dir, url: "http://" + listener.Addr().String(), done: make(chan struct{}),
		server: &http.Server{Handler: backend, ReadHeaderTimeout: 10 * time.Second},
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // The error says that Stop has closed the listener.
	}()
	return s, nil
}

// Stop ends the server.
func (s *GitServer) Stop() {
	_ = s.server.Close() // It is meant to cut off requests in progress.
	<-s.done
}

// Repository is a git repository whose one branch is "main".
type Repository struct {
	// Dir is the folder of its files, which are the next commit.
	Dir string
	// URL is where it is cloned from.
	URL string
	git string
}

// Repository makes an empty repository.
func (s *GitServer) Repository(ctx context.Context, name string) (*Repository, error) {
	r := &Repository{Dir: filepath.Join(s.dir, name), URL: s.url + "/" + name + ".git", git: filepath.Join(s.dir, name+".git")}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	if err := r.run(ctx, "init", "--quiet", "--initial-branch=main"); err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	return r, nil
}

// Commit makes a commit of all files, also where nothing has changed, and returns its name.
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

func (r *Repository) run(ctx context.Context, args ...string) error {
	if _, err := process.Capture(r.command(ctx, args...)); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "git", append([]string{"--git-dir", r.git, "--work-tree", r.Dir}, args...)...)
}
