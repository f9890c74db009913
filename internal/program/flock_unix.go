//go:build unix

package program

import (
	"errors"
	"os"
	"syscall"
)

// isPrivate reports whether a path is a directory, not a link to one, that belongs to this user and to which nobody else may write.
func isPrivate(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// flock locks a file until it is closed. It returns errInUse if another process has the lock.
func flock(file *os.File) error {
	return refusal(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}

// refusal returns why a program must not use a directory, given the error of its lock, or nil if it may. Some file systems, such as NFS without a
// lock service, have no locks: there, it must be enough that only one pod at a time has the volume.
func refusal(err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errInUse
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK):
		return nil
	}
	return err
}
