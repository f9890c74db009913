package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

const (
	// readerUser is the name of the user for people's commands, which reads the streams and writes nothing.
	readerUser = "reader"
	// ownUserName is the user of a process with the watcher, the actuator and the server. Its file is beside the streams, because the names of the
	// consumers, which have positions there, are derived from its key.
	ownUserName = "own"
)

// Keys are the keys of a process with the watcher, the actuator and the server.
type Keys struct {
	// Fingerprint is the content of the watcher's key file.
	Fingerprint []byte
	// Made says that the fingerprint key is new. It is also set if an error followed.
	Made bool
	// Reader is the public key of the user for people's commands.
	Reader string
}

// OwnKeys returns the keys in the Secrets of MakeKeys, and creates missing ones. It needs permission to create Secrets and to read these two.
func OwnKeys(ctx context.Context, opts KeyOptions) (Keys, error) {
	opts.NATSUsers = []string{readerUser}
	var keys Keys
	for range 2 {
		fingerprint, err := opts.get(ctx, fingerprintSecret)
		if err != nil {
			return keys, err
		}
		reader, err := opts.get(ctx, natsSecretPrefix+readerUser)
		if err != nil {
			return keys, err
		}
		if fingerprint != nil && reader != nil {
			keys.Fingerprint, keys.Reader = fingerprint.Data[fingerprintKey], string(reader.Data[publicKey])
			return keys, keys.check()
		}
		keys.Made = keys.Made || fingerprint == nil
		if err := MakeKeys(ctx, opts); err != nil {
			return keys, err
		}
	}
	return keys, errors.New("secrets with keys were deleted as soon as they were made")
}

// check returns an error if a Secret, perhaps of another author, lacks a key. Without the reader's key, the server would need no authentication.
func (k *Keys) check() error {
	if len(k.Fingerprint) == 0 {
		return fmt.Errorf("secret %s: %s is empty, want the content of a file with fingerprint keys", fingerprintSecret, fingerprintKey)
	}
	if !nkeys.IsValidPublicUserKey(k.Reader) {
		return fmt.Errorf("secret %s: %s is no public NKey of a user", natsSecretPrefix+readerUser, publicKey)
	}
	return nil
}

// ReaderFile returns the public key of the user for people's commands, whose seed is in a file. It creates a missing file. No error quotes the seed.
func ReaderFile(path string) (string, error) {
	pair, err := userFile(path, readerUser)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// ownUser returns the user of this process, whose seed is in a folder. It creates both if they are missing.
func ownUser(dir string) (nkeys.KeyPair, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return userFile(filepath.Join(dir, ownUserName+".nk"), ownUserName)
}

// userFile returns the user whose seed is in a file. It creates a missing file. No error quotes the seed.
func userFile(path, name string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		user, err := newUser(rand.Reader, name)
		if err != nil {
			return nil, fmt.Errorf("generating the nats user %s: %w", name, err)
		}
		seed = []byte(user[name+".nk"])
		if err := WriteKeyFile(path, seed); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	defer clear(seed)
	pair, err := nkeys.ParseDecoratedUserNKey(seed)
	if err != nil {
		return nil, errors.New(path + " has no NKey of a user")
	}
	return pair, nil
}

// RemoveStreams removes the streams of a stopped server, and reports whether there were any.
func RemoveStreams(storeDir string) (bool, error) {
	streams := filepath.Join(storeDir, server.JetStreamStoreDir)
	if _, err := os.Stat(streams); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, os.RemoveAll(streams)
}

// WriteKeyFile writes a file with a key. The file is on the disk before the key is used, and is complete or missing even if the process is killed.
func WriteKeyFile(path string, content []byte) error {
	temporary := path + ".new"
	err := writeThrough(temporary, content)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

// writeThrough writes a file and waits until its content is on the disk.
func writeThrough(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir waits until the entries of a directory are on the disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
