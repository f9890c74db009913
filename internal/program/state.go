package program

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// keyBytes is the size of a fingerprint key: the output of SHA-256.
const keyBytes = 32

// state is what Reloader keeps in a directory.
type state struct {
	// keyFile has the fingerprint key, streams are the streams of the embedded NATS.
	keyFile, streams string
	// made reports that there was no key, so that nothing is known of the time before.
	made bool
}

// openState returns the state in a directory, and makes what is missing. An own key file, if there is one, is used instead of a key in the
// directory.
//
// Fingerprints under different keys cannot be compared: streams that were left without their key would make every source that was written
// meanwhile count as changed. So they go with the key, and all sources are recorded anew.
func openState(dir, ownKey string, random io.Reader) (state, error) {
	s := state{keyFile: filepath.Join(dir, "fingerprint.key"), streams: filepath.Join(dir, "nats")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return state{}, fmt.Errorf("--state-dir: %w, want a directory that this program may write to", err)
	}
	if ownKey != "" {
		s.keyFile = ownKey
		_, err := os.Stat(s.streams)
		s.made = errors.Is(err, fs.ErrNotExist)
		return s, nil
	}
	_, err := os.Stat(s.keyFile)
	if err == nil {
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("--state-dir: %w", err)
	}
	if err := os.RemoveAll(s.streams); err != nil {
		return state{}, fmt.Errorf("--state-dir: removing the streams of a lost key: %w", err)
	}
	s.made = true
	return s, makeKey(s.keyFile, random)
}

// makeKey writes a key file as a whole: a program that ends meanwhile leaves none.
func makeKey(path string, random io.Reader) error {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return fmt.Errorf("generating the fingerprint key: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	return nil
}
