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
)

// ErrExited is returned where something was expected of a process that has ended.
var ErrExited = errors.New("process has ended")

// Options say what to run.
type Options struct {
	// Path is the binary.
	Path string
	// Args are its arguments, without its own name.
	Args []string
	// Env is added to the environment of this process, over which it wins.
	Env []string
	// Dir is the working folder. Empty means that of this process.
	Dir string
	// Name is what errors call the process. Empty means the base name of Path.
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
	done    chan struct{} // Closed when the process was waited for; err is set by then.
	err     error
}

// Start starts a program. It is killed when this process ends, however that happens, and the caller
// should end it before with [Process.Stop] or [Process.Kill].
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
	cmd.Dir = opts.Dir
	// A file, not a writer: the child writes into it by itself, so nothing has to copy, and a slow reader does not
	// slow it.
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

// own starts the command and waits for it. The death signal of a child belongs to the thread that forked it, not to
// the process, and the Go runtime ends threads as it likes: so this goroutine keeps its thread until the child is gone.
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
	close(p.done)
}

// Run is [Start] for a test: it fails the test where the program does not start, stops it at the test's
// end, and shows the end of its log if the test failed.
func Run(t testing.TB, opts Options) *Process {
	t.Helper()
	if opts.Name == "" {
		opts.Name = filepath.Base(opts.Path)
	}
	if opts.LogFile == "" {
		opts.LogFile = filepath.Join(t.TempDir(), opts.Name+".log")
	}
	p, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	p.StopAfter(t)
	return p
}

// StopAfter stops the process at the end of a test, and shows the end of its log if the test failed.
func (p *Process) StopAfter(t testing.TB) {
	t.Cleanup(func() {
		// An error is the exit status of a program that the test has killed.
		_ = p.Stop(10 * time.Second)
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", p.name, p.Tail())
		}
	})
}

// Name returns what errors call the process.
func (p *Process) Name() string { return p.name }

// Pid returns the process id, also of a process that has ended.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the process has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process has ended. The error is an [*exec.ExitError] where its status was not 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal. The error is [os.ErrProcessDone] where the process has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill ends the process as a crash would, with SIGKILL, and waits for it. It may be called more than once.
func (p *Process) Kill() {
	// The only error is that it has ended already.
	_ = p.process.Kill()
	<-p.done
}

// Stop asks the process to end with SIGTERM, kills it when the grace is over, and waits for it. It may be called more
// than once. The result is that of [Process.Wait].
func (p *Process) Stop(grace time.Duration) error {
	_ = p.process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
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
