package tests

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheFingerprintKeyIsReplacedAndNothingRolls(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	for _, name := range []string{"db", "touched", "still"} {
		r.write(events.KindSecret, name, map[string]string{"password": "one"})
		r.create(workload{name: name, on: "auto", read: readsAll(events.KindSecret, name)})
	}
	r.placeFence()
	r.start()
	change := func(password string, names ...string) func() {
		return func() {
			for _, name := range names {
				r.set(events.KindSecret, name, "password", password)
			}
		}
	}
	r.rolls("a change under the old key", once("statefulset/db"), change("two", "db"))
	oldID := r.keyID("db")
	old, err := os.ReadFile(r.programs.KeyFile())
	testkit.Must(t, err)
	r.rollsNothing("an annotation", func() { r.annotate(events.KindSecret, "touched", "example.com/note", "hello") })

	key := newFingerprintKey()
	r.rollsNothing("a new key is put before the old one", func() { r.replaceFingerprintKeys(key + string(old)) })
	r.rolls("a change under the new key", once("statefulset/db", "statefulset/touched"), change("three", "db", "touched"))
	if id := r.keyID("db"); id == oldID {
		t.Errorf("the change after the new key was made is under key %s, the old one", id)
	}
	r.rollsNothing("the old key is taken away", func() { r.replaceFingerprintKeys(key) })
	if id := r.keyID("still"); id != oldID {
		t.Fatalf("the event of what has never changed is under key %s, want the old one, or this shows nothing", id)
	}
	all := once("statefulset/db", "statefulset/touched", "statefulset/still")
	r.rolls("changes without the old key", all, change("four", "db", "touched", "still"))
}

func newFingerprintKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key) + "\n"
}

// replaceFingerprintKeys writes the key file and has the watcher read it.
func (r *rig) replaceFingerprintKeys(content string) {
	r.Helper()
	testkit.Must(r, os.WriteFile(r.programs.KeyFile(), []byte(content), 0o600))
	if err := r.watcher.Stop(20 * time.Second); err != nil {
		r.Fatalf("stopping the watcher: %v", err)
	}
	r.startWatcher()
}

// keyID is the id of the key under which the last event of a Secret was made.
func (r *rig) keyID(secret string) string {
	r.Helper()
	id, _, _ := strings.Cut(r.lastChange(events.Source{Kind: events.KindSecret, Name: secret}).Fingerprint, ":")
	return id
}
