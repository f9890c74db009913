package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errInUse means that another process has the lock of a directory.
var errInUse = errors.New("another process uses the directory")

// lockDir creates a directory if needed, and locks it. The lock is held until the file is closed or the process ends, so a killed process leaves
// no lock.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errInUse
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, file.Close())
	}
	return file, nil
}

// lockFirst locks the first of the directories that this program may write to. If there is none, the error is about the first directory.
func lockFirst(dirs []string) (dir string, lock *os.File, err error) {
	for _, dir := range dirs {
		lock, lockErr := lockDir(dir)
		if lockErr == nil {
			return dir, lock, nil
		}
		if err == nil {
			err = lockErr
		}
		if errors.Is(lockErr, errInUse) {
			break // Do not run beside the other process with another directory.
		}
	}
	return "", nil, fmt.Errorf("--state-dir: %w, want a directory of its own that this program may write to", err)
}
