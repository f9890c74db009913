package process

import "syscall"

// childAttr makes the kernel kill a child when the thread that forked it is gone, and so when this process has ended in any
// way. It also gives the child its own process group, so that a Ctrl-C at the terminal reaches only the tests, which then
// stop their children in order.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
