package program

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/keyturn/keyturn/internal/bus/embedded"
)

// keyBytes is the size of a fingerprint key: the output of SHA-256.
const keyBytes = 32

// keyName is the name of a file with a fingerprint key beside the streams.
const keyName = "fingerprint.key"

// state is the directory in which the program reloader keeps its streams and its key.
type state struct {
	dir string
	// keyFile is the file with the fingerprint key, and streams the directory with the streams of the embedded NATS.
	keyFile, streams string
	// made is true if there was no earlier state, so that earlier content of sources is unknown.
	made bool
	// lock keeps other processes from using the directory until it is closed.
	lock *os.File
}

// openState returns the state in the first writable directory, and creates missing files. No other process can use the directory until the lock is
// closed. If ownKey names a key file, that is used instead of a key in the directory.
//
// Fingerprints under different keys cannot be compared: if streams were kept without their key, every source that was written meanwhile would count
// as changed. So they are removed if the key is lost, and all sources are recorded again.
func openState(dirs []string, ownKey string, random io.Reader) (state, error) {
	dir, lock, err := lockFirst("--state-dir", dirs)
	if err != nil {
		return state{}, err
	}
	s := state{dir: dir, keyFile: filepath.Join(dir, keyName), streams: filepath.Join(dir, "nats"), lock: lock}
	if err := s.prepare(ownKey, random); err != nil {
		return state{}, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *state) prepare(ownKey string, random io.Reader) error {
	if ownKey != "" {
		s.keyFile = ownKey
		_, err := os.Stat(s.streams)
		s.made = errors.Is(err, fs.ErrNotExist)
		return nil
	}
	_, err := os.Stat(s.keyFile)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--state-dir: %w", err)
	}
	if err := os.RemoveAll(s.streams); err != nil {
		return fmt.Errorf("--state-dir: removing the streams of a lost key: %w", err)
	}
	s.made = true
	if err := makeKey(s.keyFile, random); err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	return nil
}

func makeKey(path string, random io.Reader) error {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return fmt.Errorf("generating the fingerprint key: %w", err)
	}
	return embedded.WriteKeyFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
}

// errInUse means that another process has the lock of a directory.
var errInUse = errors.New("another process uses the directory")

// errForeign means that another user may have put keys into a directory, or can read them.
var errForeign = errors.New("another user made the directory, or may write to it")

// lockDir creates a directory if needed, and locks it. The lock is held until the file is closed or the process ends, so a killed process leaves no
// lock. Where everybody may create files, the directory must belong to this user alone.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if parent, err := os.Stat(filepath.Dir(dir)); err != nil {
		return nil, err
	} else if parent.Mode().Perm()&0o002 != 0 && !isPrivate(dir) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errForeign}
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, file.Close())
	}
	return file, nil
}

// stateDirs returns the directory that was asked for or, if that is empty, those for a state that is not kept, by their name. A container with a
// read-only root may still write to its shared memory.
func stateDirs(dir, name string) []string {
	if dir != "" {
		return []string{dir}
	}
	return []string{filepath.Join(os.TempDir(), name), filepath.Join("/dev/shm", name)}
}

// lockFirst locks the first directory that this program may write to. If there is none, the error is about the first one, and names the flag.
func lockFirst(flag string, dirs []string) (dir string, lock *os.File, err error) {
	for _, dir := range dirs {
		lock, lockErr := lockDir(dir)
		if lockErr == nil {
			return dir, lock, nil
		}
		err = cmp.Or(err, lockErr)
		if errors.Is(lockErr, errInUse) {
			break // Do not use another directory beside the other process.
		}
	}
	return "", nil, fmt.Errorf("%s: %w, want a directory of its own that this program may write to", flag, err)
}
