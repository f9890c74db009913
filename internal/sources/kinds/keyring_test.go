package kinds

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// keyLine is a line of a key file: a number, repeated.
func keyLine(number byte, size int) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{number}, size))
}

func TestParseKeyring(t *testing.T) {
	first, second := keyringOf(1).keys[0].id, keyringOf(2).keys[0].id
	for _, tt := range []struct {
		name, content string
		want          []string // the ids
		err           string
	}{
		{name: "the order of the lines is kept", content: keyLine(2, 32) + "\n" + keyLine(1, 32) + "\n", want: []string{second, first}},
		{
			name:    "comments, empty lines, spaces and the line ends of Windows are passed over",
			content: "# current, since March\r\n\r\n  " + keyLine(1, 32) + "\t\r\n   # the one before\n" + keyLine(2, 32) + "\n\n",
			want:    []string{first, second},
		},
		{name: "a file without a key is refused", content: "# nothing here yet\n\n", err: "holds no key, want at least one of 32 bytes in base64"},
		{name: "a key that is too short is refused by its line", content: "#\n" + keyLine(1, 31), err: "line 2 holds 31 bytes, want at least 32"},
		{name: "what is not base64 is refused", content: "correct horse battery staple correct horse battery staple", err: "line 1 is not base64"},
		{name: "a key that comes twice is refused", content: keyLine(1, 32) + "\n" + keyLine(2, 32) + "\n" + keyLine(1, 32), err: "line 3 repeats a key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ring, err := parseKeyring([]byte(tt.content))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			testkit.Must(t, err)
			var ids []string
			for _, k := range ring.keys {
				ids = append(ids, k.id)
			}
			testkit.WantEqual(t, "ids", tt.want, ids)
		})
	}
}

func TestLoadKeyringSaysWhichFileAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	testkit.Must(t, os.WriteFile(short, []byte(keyLine(7, 16)), 0o600))
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"): "--fingerprint-key-file: open " + filepath.Join(dir, "missing") +
			": no such file or directory; make one with: openssl rand -base64 32",
		short: "--fingerprint-key-file " + short + ": line 1 holds 16 bytes, want at least 32; make a key with: openssl rand -base64 32",
	} {
		if _, err := LoadKeyring(path); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// keyringErrors matches all possible errors. None of them can contain a part of a key.
var keyringErrors = regexp.MustCompile(`^(line \d+ (is not base64|holds \d+ bytes, want at least 32|repeats a key)` +
	`|holds no key, want at least one of 32 bytes in base64)$`)

func FuzzParseKeyring(f *testing.F) {
	f.Add([]byte(keyLine(1, 32) + "\n# old\n" + keyLine(2, 64)))
	f.Add([]byte(keyLine(1, 31)))
	f.Add([]byte("not base64\n"))
	f.Add([]byte(keyLine(1, 32) + "\n" + keyLine(1, 32)))
	f.Fuzz(func(t *testing.T, content []byte) {
		ring, err := parseKeyring(content)
		if err != nil {
			if !keyringErrors.MatchString(err.Error()) {
				t.Errorf("the error %q may quote a key", err)
			}
			return
		}
		if len(ring.keys) == 0 {
			t.Error("a ring without a key")
		}
		for i, k := range ring.keys {
			if len(k.secret) < minKeyBytes {
				t.Errorf("key %d has %d bytes", i, len(k.secret))
			}
		}
	})
}
