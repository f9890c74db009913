package program

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// random returns a reader with enough bytes for a key, all of the same value.
func random(b byte) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, keyBytes)) }

func TestTheKeyAndTheStreamsOfAStateAreLostTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		// lose is what is removed between two starts.
		lose func(s state) error
		// kept says what is unchanged after that.
		keyKept, streamsKept, made bool
	}{
		{"a state that is kept", func(state) error { return nil }, true, true, false},
		{"a lost key takes the streams with it", func(s state) error { return os.Remove(s.keyFile) }, false, false, true},
		{"lost streams leave the key", func(s state) error { return os.RemoveAll(s.streams) }, true, false, false},
		{"a lost directory", func(s state) error { return os.RemoveAll(filepath.Dir(s.keyFile)) }, false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			before, err := openState([]string{dir}, "", random('a'))
			testkit.Must(t, err)
			if !before.made {
				t.Error("the first state is not new")
			}
			first := read(t, before.keyFile)
			closed(t, before)
			message := filepath.Join(before.streams, "jetstream", "message")
			testkit.Must(t, os.MkdirAll(filepath.Dir(message), 0o700))
			testkit.Must(t, os.WriteFile(message, nil, 0o600))
			testkit.Must(t, tt.lose(before))
			after, err := openState([]string{dir}, "", random('b'))
			testkit.Must(t, err)
			defer closed(t, after)
			_, err = os.Stat(message)
			if kept := err == nil; kept != tt.streamsKept {
				t.Errorf("streams kept: got %t, want %t", kept, tt.streamsKept)
			}
			if kept := read(t, after.keyFile) == first; kept != tt.keyKept {
				t.Errorf("key kept: got %t, want %t", kept, tt.keyKept)
			}
			if after.made != tt.made {
				t.Errorf("made: got %t, want %t", after.made, tt.made)
			}
		})
	}
}

func TestTheKeyOfAStateIsPrivate(t *testing.T) {
	s, err := openState([]string{filepath.Join(t.TempDir(), "state")}, "", random('a'))
	testkit.Must(t, err)
	defer closed(t, s)
	for path, want := range map[string]os.FileMode{s.keyFile: 0o600, filepath.Dir(s.keyFile): 0o700} {
		info, err := os.Stat(path)
		testkit.Must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %o, want %o", filepath.Base(path), got, want)
		}
	}
}

func TestAKeyFileOfOnesOwnIsUsedInstead(t *testing.T) {
	dir := t.TempDir()
	s, err := openState([]string{dir}, "/keys/own", nil)
	testkit.Must(t, err)
	defer closed(t, s)
	if s.keyFile != "/keys/own" || !s.made {
		t.Errorf("got %+v, want the own key of a new state", s)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("made: got %v, %v, want the lock alone", entries, err)
	}
}

func TestAStateHasOneProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := openState([]string{dir}, "", random('a'))
	testkit.Must(t, err)
	_, err = openState([]string{dir, t.TempDir()}, "", random('b'))
	want := "--state-dir: lock " + dir + ": another process uses the directory, want a directory of its own that this program may write to"
	if !errors.Is(err, errInUse) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	closed(t, s)
	if s, err = openState([]string{dir}, "", random('b')); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	closed(t, s)
}

func TestATemporaryStateIsWhereItCanBe(t *testing.T) {
	file, dir := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	s, err := openState([]string{filepath.Join(file, "state"), dir}, "", random('a'))
	testkit.Must(t, err)
	defer closed(t, s)
	if s.dir != dir || filepath.Dir(s.keyFile) != dir || filepath.Dir(s.streams) != dir {
		t.Errorf("got %+v, want all of it in %s", s, dir)
	}
}

func TestNoKeysAreTakenFromADirectoryOfAnotherUser(t *testing.T) {
	shared := t.TempDir()
	testkit.Must(t, os.Chmod(shared, 0o777))
	for _, tt := range []struct {
		name string
		make func(dir string) error
		want error
	}{
		{"there is none yet", func(string) error { return nil }, nil},
		{"it is this user's alone", func(dir string) error { return os.Mkdir(dir, 0o700) }, nil},
		{"others may write to it", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, errForeign},
		{"it is a link", func(dir string) error { return os.Symlink(t.TempDir(), dir) }, errForeign},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(shared, strings.ReplaceAll(tt.name, " ", "-"))
			testkit.Must(t, tt.make(dir))
			s, err := openState([]string{dir}, "", random('a'))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil {
				closed(t, s)
			}
		})
	}
}

// closed closes a state, so that the next one can be opened.
func closed(t *testing.T, s state) {
	t.Helper()
	if err := s.lock.Close(); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	testkit.Must(t, err)
	return string(content)
}
