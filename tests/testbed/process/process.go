package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// ErrExited is returned if something was expected of a process that has ended.
var ErrExited = errors.New("process has ended")

// Options say what to run.
type Options struct {
	// Path is the binary.
	Path string
	// Args are its arguments, without its own name.
	Args []string
	// Env is added to the environment of this process, and takes precedence over it.
	Env []string
	// Name is the name of the process in errors. Empty means the base name of Path.
	Name string
	// LogFile receives what the process writes to stdout and stderr. It is truncated first. Empty means a file in the
	// temporary folder (of the test, with Run).
	LogFile string
}

// Process is a program that was started by [Start]. Its methods may be called concurrently.
type Process struct {
	name    string
	pid     int
	logFile string
	process *os.Process
	done    chan struct{} // closed when the process was waited for; err is set by then
	err     error
}

// Start starts a program. The caller should end it with [Process.Stop] or [Process.Kill]. It is killed when this process
// ends, however that happens.
func Start(opts Options) (*Process, error) {
	if opts.Name == "" {
		opts.Name = filepath.Base(opts.Path)
	}
	log, err := openLog(opts)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.Name, err)
	}
	defer log.Close()

	cmd := exec.Command(opts.Path, opts.Args...)
	cmd.Env = append(os.Environ(), opts.Env...)
	// Use a file instead of a writer: the child writes to it directly, so nothing is copied, and a slow reader does not slow
	// the child down.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()

	p := &Process{name: opts.Name, logFile: log.Name(), done: make(chan struct{})}
	started := make(chan error, 1)
	go p.own(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.Name, err)
	}
	return p, nil
}

// own starts the command and waits for it. The death signal of a child is sent when the thread that forked it ends, not the
// process, and the Go runtime may end threads at any time. So this goroutine keeps its thread until the child is gone.
func (p *Process) own(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid, p.process = cmd.Process.Pid, cmd.Process
	started <- nil
	p.err = cmd.Wait()
	// Before anybody knows that it has ended: when the last of the processes has, the tests may be over.
	p.tellRace(os.Stderr)
	close(p.done)
}

// Run is like [Start], for a test: it fails the test if the program does not start, stops the program at the end of the test,
// and shows the end of its log if the test failed.
func Run(t testing.TB, opts Options) *Process {
	t.Helper()
	if opts.Name == "" {
		opts.Name = filepath.Base(opts.Path)
	}
	if opts.LogFile == "" {
		opts.LogFile = filepath.Join(t.TempDir(), opts.Name+".log")
	}
	p, err := Start(opts)
	testkit.Must(t, err)
	p.StopAfter(t)
	return p
}

// StopAfter stops the process at the end of a test, and shows the end of its log if the test failed.
func (p *Process) StopAfter(t testing.TB) {
	t.Cleanup(func() {
		// An error is only the exit status of a program that the test has killed.
		_ = p.Stop(10 * time.Second)
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", p.name, p.Tail())
		}
	})
}

// Name returns the name of the process in errors.
func (p *Process) Name() string { return p.name }

// Pid returns the process id, even after the process has ended.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the process has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process has ended. The error is an [*exec.ExitError] if its status is not 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal. The error is [os.ErrProcessDone] if the process has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill ends the process like a crash, with SIGKILL, and waits for it. It may be called more than once.
func (p *Process) Kill() {
	// The only possible error is that it has already ended.
	_ = p.process.Kill()
	<-p.done
}

// Stop sends SIGTERM to the process, kills it after the grace period, and waits for it. The time in which the machine stands
// still does not count. It may be called more than once. The result is that of [Process.Wait].
func (p *Process) Stop(grace time.Duration) error {
	_ = p.process.Signal(syscall.SIGTERM)
	if !running.Await(p.done, grace) {
		p.Kill()
	}
	return p.err
}

// Ended reports whether the process has ended and was waited for.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
