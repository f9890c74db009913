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

// lockDir makes a directory if there is none, and takes its lock, which ends with the file or the process: a process that is killed leaves none.
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

// lockFirst locks the first of the directories that this program may write to. The error is that of the first.
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
			break // The other process is the one that this would be.
		}
	}
	return "", nil, fmt.Errorf("--state-dir: %w, want a directory of its own that this program may write to", err)
}
