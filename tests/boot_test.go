package tests

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAProgramThatCannotBeginSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{})
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	// What no output may hold.
	short, raw := secretBytes(t, 31), secretBytes(t, 64)
	inBase64 := base64.StdEncoding.EncodeToString
	unreadable := file("unreadable", inBase64(raw))
	testkit.Must(t, os.Chmod(unreadable, 0))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer busy.Close()

	watcher := []string{"--cluster", "demo", "--kubeconfig", plane.Kubeconfig(), "--metrics-addr=", "--health-addr="}
	withKey := append([]string{"--fingerprint-key-file", r.programs.KeyFile()}, watcher...)
	actuator := watcher
	embedded := append([]string{"--nats-store-dir", filepath.Join(dir, "nats")}, actuator...)
	with := func(args []string, more ...string) []string { return append(append([]string(nil), args...), more...) }
	const watches, acts = "watcher", "actuator"
	type test struct {
		name    string
		program string
		args    []string
		env     []string
		want    []string
	}
	tests := []test{
		{"a key file that is missing", watches, with(watcher, "--fingerprint-key-file", filepath.Join(dir, "nothing")), nil, []string{"nothing: no such file or directory; make one with: openssl"}},
		{"a key that is too short", watches, with(watcher, "--fingerprint-key-file", file("short", inBase64(short))), nil, []string{"short: line 1 holds 31 bytes, want at least 32"}},
		{"a key that is too short behind a good one", watches, with(watcher, "--fingerprint-key-file", file("second", inBase64(raw)+"\n"+inBase64(short)+"\n")), nil, []string{"second: line 2 holds 31 bytes, want at least 32"}},
		{"a key that is not in base64", watches, with(watcher, "--fingerprint-key-file", file("raw", "key:"+string(raw))), nil, []string{"raw: line "}},
		{"no flags for the watcher", watches, nil, nil, []string{`--cluster: ""`, "--fingerprint-key-file: is empty"}},
		{"no flags for the actuator", acts, nil, nil, []string{`--cluster: ""`}},
		{"an unknown flag", acts, with(actuator, "--settel", "1s"), nil, []string{"unknown flag: --settel"}},
		{"an argument that is no flag", watches, with(withKey, "secret"), nil, []string{`unknown command "secret"`}},
		{"a selector that is none", watches, with(withKey, "--selector", "a=("), nil, []string{`--selector: "a=(", want a label selector`}},
		{"a duration that is none", acts, with(actuator, "--settle", "abc"), nil, []string{`invalid argument "abc" for "--settle"`}},
		{"two wrong variables", acts, actuator, []string{"KEYTURN_MAX_ROLLOUTS=many", "KEYTURN_DRY_RUN=perhaps"}, []string{`KEYTURN_DRY_RUN: "perhaps", want true or false`, `KEYTURN_MAX_ROLLOUTS: "many", want a whole number`}},
		{"wrong values of several flags", acts, with(actuator, "--log-level", "loud", "--settle", "-5s", "--max-rollouts", "-1"), nil, []string{
			`--log-level: "loud", want debug, info, warn or error`, "settle: -5s, want 0 or more", "max-rollouts: -1, want 0",
		}},
		{"an address that is taken", acts, with(actuator, "--health-addr", busy.Addr().String()), nil, []string{"serving health: listening: listen tcp " + busy.Addr().String()}},
		{"a kubeconfig that is missing", acts, with(actuator, "--kubeconfig", filepath.Join(dir, "nothing")), nil, []string{"--kubeconfig: stat "}},
		{"NATS credentials that are missing", watches, with(withKey, "--nats-creds", filepath.Join(dir, "nothing")), nil, []string{"nats-creds: open "}},
		{"NATS credentials that are none", watches, with(withKey, "--nats-creds", file("creds", inBase64(raw))), nil, []string{"want a credentials file with a user's JWT, or a user's NKey seed"}},
		{"a NATS URL that is none", acts, with(actuator, "--nats-url", "nats://keyturn:"+inBase64(raw)+"%zz@nats:4222"), nil, []string{"nats-url: want URLs like nats://host:4222"}},
		{"a configuration of an embedded server without a folder", acts, with(actuator, "--nats-config", "nats.conf"), nil, []string{`--nats-config: "nats.conf", want it with --nats-store-dir only`}},
		{"a domain that no embedded server copies from", acts, with(actuator, "--stores-from", "hub@hub"), nil, []string{`--stores-from: ["hub@hub"], want a domain with --nats-store-dir or --nats-replicas only`}},
		{"an embedded server that is open to everybody", acts, with(embedded, "--nats-config", file("open.conf", "listen: 0.0.0.0:4222\n")), nil, []string{`listen "0.0.0.0:4222" is not a loopback address: want a config file with an authorization or accounts block`}},
		{"an embedded server with a folder that cannot be made", acts, with(embedded, "--nats-store-dir", "/proc/nothing"), nil, []string{"embedded nats: mkdir /proc/nothing: no such file or directory"}},
		{"an embedded server on an address that is taken", acts, with(embedded, "--nats-config", file("busy.conf", "listen: \""+busy.Addr().String()+"\"\n")), nil, []string{"embedded nats: it did not start"}},
	}
	if os.Geteuid() != 0 {
		// root reads what nobody may.
		tests = append(tests, test{"a key file that may not be read", watches, with(watcher, "--fingerprint-key-file", unreadable), nil, []string{"unreadable: permission denied"}})
	}
	binaries := map[string]string{watches: r.programs.WatcherBinary(), acts: r.programs.ActuatorBinary()}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := command{binary: binaries[tt.program], args: tt.args, env: tt.env}.run(t)
			got.refused(t, tt.want...)
			if got.stdout != "" {
				t.Errorf("stdout: got %q, want nothing", got.stdout)
			}
			if strings.Contains(got.stderr, "panic") || strings.Contains(got.stderr, "goroutine ") {
				t.Errorf("it panics:\n%s", got.stderr)
			}
			h := &haystack{}
			h.add("stderr", []byte(got.stderr))
			for _, key := range [][]byte{short, raw, []byte(inBase64(short)), []byte(inBase64(raw))} {
				for _, leak := range h.leaks(key) {
					t.Errorf("key material: %s:\n%s", leak, got.stderr)
				}
			}
		})
	}
}

// secretBytes makes what nobody knows.
func secretBytes(t *testing.T, size int) []byte {
	t.Helper()
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	return content
}

// secretText makes what nobody knows and everybody can print.
func secretText(t *testing.T) []byte {
	t.Helper()
	return []byte(hex.EncodeToString(secretBytes(t, 32)))
}
