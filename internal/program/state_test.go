package program

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// random returns enough of one byte for a key.
func random(b byte) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, keyBytes)) }

func TestTheKeyAndTheStreamsOfAStateAreLostTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		// lose is what is removed between two starts.
		lose func(s state) error
		// kept says what is as before after that.
		keyKept, streamsKept, made bool
	}{
		{"a state that is kept", func(state) error { return nil }, true, true, false},
		{"a lost key takes the streams with it", func(s state) error { return os.Remove(s.keyFile) }, false, false, true},
		{"lost streams leave the key", func(s state) error { return os.RemoveAll(s.streams) }, true, false, false},
		{"a lost directory", func(s state) error { return os.RemoveAll(filepath.Dir(s.keyFile)) }, false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			before, err := openState(dir, "", random('a'))
			if err != nil {
				t.Fatal(err)
			}
			if !before.made {
				t.Error("the first state is not new")
			}
			first := read(t, before.keyFile)
			message := filepath.Join(before.streams, "jetstream", "message")
			if err := os.MkdirAll(filepath.Dir(message), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(message, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.lose(before); err != nil {
				t.Fatal(err)
			}
			after, err := openState(dir, "", random('b'))
			if err != nil {
				t.Fatal(err)
			}
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
	s, err := openState(filepath.Join(t.TempDir(), "state"), "", random('a'))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{s.keyFile: 0o600, filepath.Dir(s.keyFile): 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %o, want %o", filepath.Base(path), got, want)
		}
	}
}

func TestAKeyFileOfOnesOwnIsUsedInstead(t *testing.T) {
	dir := t.TempDir()
	s, err := openState(dir, "/keys/own", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.keyFile != "/keys/own" || !s.made {
		t.Errorf("got %+v, want the own key of a new state", s)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("made: got %v, %v, want nothing", entries, err)
	}
}

func TestAStateThatCannotBeWrittenNamesItsFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(filepath.Join(file, "state"), "", random('a')); err == nil || !strings.HasPrefix(err.Error(), "--state-dir: ") {
		t.Errorf("got %v, want an error about --state-dir", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
