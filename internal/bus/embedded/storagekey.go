package embedded

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// storageSecret contains the key of the storage under storageKey.
	storageSecret = "keyturn-nats-storage"
	storageKey    = "storage.key"
	// leastStorage is the minimum length of the text of a key.
	leastStorage = 32
)

// ReadStorageKey returns the key in a file, or "" if there is no file. No error quotes the content.
func ReadStorageKey(path string) (string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return checkedStorageKey(path, content)
}

// OwnStorageKey returns the key in the Secret of MakeKeys, and creates a missing one. It needs permission to create Secrets and to read this one.
func OwnStorageKey(ctx context.Context, opts KeyOptions) (string, error) {
	for range 2 {
		secret, err := opts.get(ctx, storageSecret)
		if err != nil {
			return "", err
		}
		if secret != nil {
			return checkedStorageKey("secret "+storageSecret+": "+storageKey, secret.Data[storageKey])
		}
		if err := opts.makeKey(ctx, storageSecret, storageKey); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("secret %s was deleted as soon as it was made", storageSecret)
}

func checkedStorageKey(where string, content []byte) (string, error) {
	key := strings.TrimSpace(string(content))
	if len(key) < leastStorage {
		return "", fmt.Errorf("%s has %d characters, want a key of %d or more", where, len(key), leastStorage)
	}
	return key, nil
}

// usableKey returns the key with which a server opens its store. It is "" for an existing store without encryption, because the server would encrypt
// it by rewriting each file in place, and a crash meanwhile could cost messages. A server ignores a stream that it cannot decrypt, and the actuator
// would then declare an empty one, so a missing or wrong key is an error.
func usableKey(storeDir, key string, logger *slog.Logger) (string, error) {
	encrypted, plain, err := assetsOf(storeDir)
	switch {
	case err != nil:
		return "", err
	case len(encrypted) > 0 && key == "":
		return "", fmt.Errorf("the streams in %s are encrypted, and their key is missing: restore the Secret %s, or begin with an empty volume",
			storeDir, storageSecret)
	// A damaged stream is reported by the server.
	case len(encrypted) > 0 && !slices.ContainsFunc(encrypted, func(one asset) bool { return one.opens(key) }):
		return "", fmt.Errorf("the streams in %s are encrypted with another key: restore the Secret %s, or begin with an empty volume",
			storeDir, storageSecret)
	case len(encrypted) == 0 && plain && key != "":
		logger.WarnContext(context.Background(), "nats storage is not encrypted: it began without a key, and stays so until the volume is replaced",
			"dir", storeDir)
		return "", nil
	}
	return key, nil
}

// asset is an encrypted stream, or a log of the servers' elections.
type asset struct {
	keyFile string // contains the asset's own key, encrypted with one that is derived from the storage key
	context string // the context of the derivation
}

// assetsOf returns the encrypted assets of a store, and whether there is one that is not encrypted.
func assetsOf(storeDir string) (encrypted []asset, plain bool, err error) {
	root := filepath.Join(storeDir, server.JetStreamStoreDir)
	for _, folder := range []string{"streams", "_js_"} {
		found, err := filepath.Glob(filepath.Join(root, "*", folder, "*", server.JetStreamMetaFile))
		if err != nil {
			return nil, false, err
		}
		for _, meta := range found {
			dir := filepath.Dir(meta)
			name := filepath.Base(dir)
			if strings.HasPrefix(name, ".") {
				continue // It is being deleted.
			}
			of := name // An election's key is derived from its name twice, a stream's from its account and name.
			if folder == "streams" {
				of = filepath.Base(filepath.Dir(filepath.Dir(dir)))
			}
			one := asset{keyFile: filepath.Join(dir, server.JetStreamMetaFileKey), context: of + name}
			switch _, err := os.Stat(one.keyFile); {
			case err == nil:
				encrypted = append(encrypted, one)
			case errors.Is(err, fs.ErrNotExist):
				plain = true
			default:
				return nil, false, err
			}
		}
	}
	return encrypted, plain, nil
}

// opens decrypts the asset's own key, like the server.
func (a asset) opens(key string) bool {
	content, err := os.ReadFile(a.keyFile)
	if err != nil {
		return false
	}
	derived := hmac.New(sha256.New, []byte(key))
	derived.Write([]byte(a.context))
	block, err := aes.NewCipher(derived.Sum(nil))
	if err != nil {
		return false
	}
	sealed, err := cipher.NewGCMWithNonceSize(block, block.BlockSize())
	if err != nil || len(content) < sealed.NonceSize() {
		return false
	}
	_, err = sealed.Open(nil, content[:sealed.NonceSize()], content[sealed.NonceSize():], nil)
	return err == nil
}
