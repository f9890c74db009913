package process

import "syscall"

// Suspend stops the process with SIGSTOP: it keeps its connections and its memory, and does nothing, as on a machine that hangs.
// [Process.Kill] and, after its grace, [Process.Stop] end it nevertheless.
func (p *Process) Suspend() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a process go on after [Process.Suspend].
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
