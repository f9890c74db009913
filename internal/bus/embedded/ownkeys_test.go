package embedded

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"

	"github.com/keyturn/keyturn/tests/testkit"
)

func (n *namespace) own(t *testing.T, log *testkit.Log) (Keys, error) {
	t.Helper()
	return OwnKeys(t.Context(), KeyOptions{Secrets: n, Updates: n, Random: rand.Reader, Logger: slog.New(slog.NewTextHandler(log, nil))})
}

func TestAProcessTakesTheKeysOfAnInstallationAndMakesWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose []string // of the Secrets of an installation with two pods
		made bool
	}{
		{"all are there", nil, false},
		{"the key of the reader is lost", []string{"keyturn-nats-reader"}, false},
		{"the fingerprint key is lost", []string{"keyturn-fingerprint-key"}, true},
		{"none is there", []string{"keyturn-fingerprint-key", "keyturn-nats-reader"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &namespace{secrets: map[string]map[string]string{}}
			testkit.Must(t, errIn(n.make(t, "watcher", "actuator", "reader")))
			before := n.secrets["keyturn-fingerprint-key"]["keys"]
			for _, name := range tt.lose {
				delete(n.secrets, name)
			}
			var log testkit.Log
			keys, err := n.own(t, &log)
			testkit.Must(t, err)
			if keys.Made != tt.made || (string(keys.Fingerprint) == before) == tt.made {
				t.Errorf("made: %t, want %t, with the fingerprint key of before otherwise", keys.Made, tt.made)
			}
			if want := n.secrets["keyturn-nats-reader"]["public"]; keys.Reader != want || !nkeys.IsValidPublicUserKey(want) {
				t.Errorf("the reader is %q, want %q", keys.Reader, want)
			}
			again, err := n.own(t, &log)
			keys.Made = false
			if diff := cmp.Diff(keys, again); err != nil || diff != "" {
				t.Errorf("the next time: %v (-first +next):\n%s", err, diff)
			}
			for _, secret := range []string{strings.TrimSpace(string(keys.Fingerprint)), n.secrets["keyturn-nats-reader"]["reader.nk"]} {
				if strings.Contains(log.String(), strings.TrimSpace(secret)) {
					t.Error("the log has a key")
				}
			}
		})
	}
}

func TestKeysThatCannotBeReadAreNotMadeAnew(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}, broken: "keyturn-fingerprint-key"}
	if _, err := n.own(t, &testkit.Log{}); err == nil || !strings.Contains(err.Error(), "keyturn-fingerprint-key") {
		t.Errorf("got %v", err)
	}
	if len(n.secrets) > 0 {
		t.Errorf("it made %d secrets", len(n.secrets))
	}
}

// Somebody else may have made the Secrets. With an empty key of the reader, the server would ask nobody for a key.
func TestASecretThatLacksItsKeyIsRefused(t *testing.T) {
	for secret, lost := range map[string]string{"keyturn-fingerprint-key": "keys", "keyturn-nats-reader": "public"} {
		for _, content := range []string{"", "-"} {
			if content == "-" && lost == "keys" {
				continue // The watcher reads it.
			}
			n := &namespace{secrets: map[string]map[string]string{}}
			testkit.Must(t, errIn(n.make(t, "reader")))
			n.secrets[secret][lost] = content
			if _, err := n.own(t, &testkit.Log{}); err == nil || !strings.Contains(err.Error(), "secret "+secret+": "+lost+" is ") {
				t.Errorf("%s is %q: got %v, want an error about it", lost, content, err)
			}
		}
	}
}

func TestTheReaderBesideTheStreamsStaysTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reader.nk")
	first, err := ReaderFile(path)
	testkit.Must(t, err)
	next, err := ReaderFile(path)
	testkit.Must(t, err)
	if first != next || !nkeys.IsValidPublicUserKey(first) {
		t.Errorf("got %q and then %q", first, next)
	}
	seed, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, seed[:20], 0o600))
	if _, err := ReaderFile(path); err == nil || strings.Contains(err.Error(), string(seed[:12])) {
		t.Errorf("half a seed: got %v, want an error that does not quote it", err)
	}
}

// A crash while the file is written would leave an empty one, with which the process never starts again.
func TestAKeyHasItsFileOnceItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reader.nk")
	testkit.Must(t, os.WriteFile(path+".new", nil, 0o600)) // What a crash leaves now.
	_, err := ReaderFile(path)
	testkit.Must(t, err)
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that what was begun is the file now", err)
	}
}

// TestTheReaderOfAProcessMayDoWhatThatOfAnInstallationMay compares the users of both, which are in two files.
func TestTheReaderOfAProcessMayDoWhatThatOfAnInstallationMay(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/programs/nats.conf")
	testkit.Must(t, err)
	subject := regexp.MustCompile(`"[^"]+"`)
	_, want, _ := strings.Cut(string(manifest), "\nREADER: {")
	want, _, _ = strings.Cut(want, "\naccounts: {")
	_, got, _ := strings.Cut(usersConfig, "READER: {")
	if diff := cmp.Diff(subject.FindAllString(want, -1), subject.FindAllString(got, -1)); diff != "" {
		t.Errorf("subjects (-deploy +process):\n%s", diff)
	}
	if !slices.Contains(subject.FindAllString(got, -1), `"$JS.API.STREAM.INFO.*"`) {
		t.Error("the reader may not ask for a stream")
	}
}

func TestAReaderNeedsAKeyAndLoopback(t *testing.T) {
	public := testkit.NewNATSUser(t, t.TempDir(), "reader")
	for _, tt := range []struct {
		name, listen, reader, want string
	}{
		{"another address", "0.0.0.0:4222", public, `listen "0.0.0.0:4222" is not a loopback address`},
		{"a name", "[::]:4222", public, "is not a loopback address"},
		{"no key", "127.0.0.1:-1", "UABC", "is no public NKey of a user"},
		{"more than a key", "127.0.0.1:-1", public + " }, { nkey: " + public, "is no public NKey of a user"},
		{"the key of an account", "127.0.0.1:-1", "A" + public[1:], "is no public NKey of a user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Start(Options{Listen: tt.listen, Reader: tt.reader, StoreDir: t.TempDir()}, nil)
			if err == nil {
				s.Shutdown()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The names of consumers follow from the key, and their positions are to survive a restart.
func TestTheUserOfThisProcessIsTheSameAtEachStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "streams")
	key := func(dir string) string {
		t.Helper()
		pair, err := ownUser(dir)
		testkit.Must(t, err)
		public, err := pair.PublicKey()
		testkit.Must(t, err)
		return public
	}
	first := key(dir)
	if again := key(dir); again != first {
		t.Errorf("got %s and then %s", first, again)
	}
	if key(t.TempDir()) == first {
		t.Error("two processes have one key")
	}
}
