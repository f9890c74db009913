package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// suspendTimeout bounds how long the threads of a process may take to stop: a thread that writes to a disk continues until the
// write has completed.
const suspendTimeout = 10 * time.Second

// Suspend stops the process with SIGSTOP: it keeps its connections and its memory, but does nothing, as on a machine that hangs. On Linux,
// Suspend returns once all threads have stopped; until then they may serve requests. [Process.Kill] and, after the grace period,
// [Process.Stop] end the process nevertheless.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil || runtime.GOOS != "linux" {
		return err
	}
	next := time.NewTicker(time.Millisecond)
	defer next.Stop()
	// Looks are counted instead of time, because the machine may stand still meanwhile.
	for left := int(suspendTimeout / time.Millisecond); ; left-- {
		stopped, err := p.hasStopped()
		if err != nil {
			return fmt.Errorf("suspend %s: %w", p.name, err)
		}
		if stopped {
			return nil
		}
		if left == 0 {
			return fmt.Errorf("suspend %s: it still runs after %s", p.name, suspendTimeout)
		}
		<-next.C
	}
}

// hasStopped reports whether no thread of the process runs.
func (p *Process) hasStopped() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return false, err
		}
		// The state is after the name, which is in parentheses: see proc_pid_stat(5).
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X") {
			return false, nil
		}
	}
	return true, nil
}

// Resume continues a process after [Process.Suspend].
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
