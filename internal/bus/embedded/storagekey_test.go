package embedded

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	aKey       = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	anotherKey = "OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg="
	// message is what is looked for in the files of a store.
	message = "what the stream holds"
)

// startWithKey starts a server with a key, or without if that is empty, and returns it with what it logs.
func startWithKey(t *testing.T, dir, key string) (*Server, jetstream.JetStream, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	s, err := Start(Options{StoreDir: dir, StorageKey: key}, slog.New(slog.NewTextHandler(log, nil)))
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	nc, err := nats.Connect("", s.ClientOption(), nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience))
	testkit.Must(t, err)
	return s, js, log
}

// fill starts a server with a key, has it store the message, and stops it.
func fill(t *testing.T, dir, key string) {
	t.Helper()
	s, js, _ := startWithKey(t, dir, key)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	testkit.Must(t, err)
	_, err = js.Publish(t.Context(), "s", []byte(message))
	testkit.Must(t, err)
	js.Conn().Close()
	s.Shutdown()
}

// wantMessage expects the stream to have the message.
func wantMessage(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "S")
	testkit.Must(t, err)
	got, err := stream.GetMsg(t.Context(), 1)
	if err != nil || string(got.Data) != message {
		t.Errorf("the first message is %v, %v, want that of before", got, err)
	}
}

// isReadable reports whether a file of the store has the message.
func isReadable(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	testkit.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		found = found || bytes.Contains(content, []byte(message))
		return err
	}))
	return found
}

func TestWhoeverHasTheVolumeReadsNothingWithoutTheKey(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, aKey)
	if isReadable(t, dir) {
		t.Error("a file has the message as it was published")
	}
	_, js, _ := startWithKey(t, dir, aKey)
	wantMessage(t, js)
}

// A server that ignores what it cannot decrypt has an empty stream instead, and what waited would be forgotten.
func TestAnEncryptedStoreIsNotReplacedByAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, aKey)
	for _, tt := range []struct{ name, key, want string }{
		{"without the key", "", "are encrypted, and their key is missing: restore the Secret keyturn-nats-storage"},
		{"with another key", anotherKey, "are encrypted with another key: restore the Secret keyturn-nats-storage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Start(Options{StoreDir: dir, StorageKey: tt.key}, nil)
			if err == nil {
				s.Shutdown()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
			if err != nil && tt.key != "" && strings.Contains(err.Error(), tt.key) {
				t.Error("the error has the key")
			}
		})
	}
	_, js, _ := startWithKey(t, dir, aKey)
	wantMessage(t, js)
}

func TestAStoreThatBeganWithoutAKeyGoesOnWithout(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "")
	if !isReadable(t, dir) {
		t.Fatal("no file has the message: the test would find nothing in an encrypted store either")
	}
	s, js, log := startWithKey(t, dir, aKey)
	wantMessage(t, js)
	if !strings.Contains(log.String(), "nats storage is not encrypted") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	js.Conn().Close()
	s.Shutdown()
	_, js, _ = startWithKey(t, dir, "")
	wantMessage(t, js)
}

func TestAServerWhoseJetStreamRestartsKeepsTheKey(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, aKey)
	s, js, _ := startWithKey(t, dir, aKey)
	s.stop() // the test looks after the storage
	now, err := s.look()
	testkit.Must(t, err)
	s.restart(t.Context(), now)
	wantMessage(t, js)
}

func TestTheKeyOfAConfigurationFileTakesPrecedence(t *testing.T) {
	dir, config := t.TempDir(), filepath.Join(t.TempDir(), "nats.conf")
	testkit.Must(t, os.WriteFile(config, []byte("jetstream: { key: \""+anotherKey+"\" }"), 0o600))
	for range 2 {
		s, err := Start(Options{StoreDir: dir, ConfigFile: config, StorageKey: aKey}, nil)
		testkit.Must(t, err)
		if got := s.options.StorageKey; got != "" {
			t.Error("the other key is used")
		}
		s.Shutdown()
	}
}

func TestAFileWithTheKeyOfTheStorageMayBeMissingButNotCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), storageKey)
	if key, err := ReadStorageKey(path); key != "" || err != nil {
		t.Errorf("without a file: got %d characters, %v, want none", len(key), err)
	}
	testkit.Must(t, os.WriteFile(path, []byte(aKey+"\n"), 0o600))
	if key, err := ReadStorageKey(path); key != aKey || err != nil {
		t.Errorf("got %d characters, %v, want the key", len(key), err)
	}
	testkit.Must(t, os.WriteFile(path, []byte(aKey[:31]+"\n"), 0o600))
	_, err := ReadStorageKey(path)
	if err == nil || !strings.Contains(err.Error(), path+" has 31 characters") || strings.Contains(err.Error(), aKey[:31]) {
		t.Errorf("a cut one: got %v, want an error about its size", err)
	}
}

func TestTheKeyOfTheStorageIsMadeOnce(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}}
	options := KeyOptions{Secrets: n, Updates: n, Storage: true, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler)}
	testkit.Must(t, MakeKeys(t.Context(), options))
	made := strings.TrimSpace(n.secrets[storageSecret][storageKey])
	testkit.Must(t, MakeKeys(t.Context(), options))
	if key, err := OwnStorageKey(t.Context(), options); err != nil || key != made || len(key) != 44 {
		t.Errorf("one process: got %d characters, %v, want those of the job", len(key), err)
	}
	delete(n.secrets, storageSecret)
	if key, err := OwnStorageKey(t.Context(), options); err != nil || key == made || key != strings.TrimSpace(n.secrets[storageSecret][storageKey]) {
		t.Errorf("without the Secret: %v, want that it is made", err)
	}
	n.secrets[storageSecret][storageKey] = "short"
	if _, err := OwnStorageKey(t.Context(), options); err == nil || !strings.Contains(err.Error(), "secret keyturn-nats-storage: storage.key has 5") {
		t.Errorf("a short one: got %v, want it refused", err)
	}
}
