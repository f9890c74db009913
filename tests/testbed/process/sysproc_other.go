//go:build unix && !linux

package process

import "syscall"

// childAttr gives a child a process group of its own. Only Linux can tie its life to that of this process: elsewhere
// a test that is killed leaves its servers running.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
