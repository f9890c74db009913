//go:build unix && !linux

package process

import "syscall"

// childAttr gives a child its own process group. Only Linux can end it with this process: elsewhere a test that is killed
// leaves its servers running.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
