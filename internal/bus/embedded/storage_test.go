package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/keyturn/keyturn/tests/testkit"
)

const mebibyte = 1 << 20

// volume is a server on a volume whose free space the test sets.
type volume struct {
	*Server
	t    *testing.T
	free atomic.Int64
	log  testkit.Log
	js   jetstream.JetStream
	// lost counts the connections that the server closed.
	lost atomic.Int64
}

func startOn(t *testing.T, dir string, free int64, config string) *volume {
	t.Helper()
	v := &volume{t: t}
	v.free.Store(free)
	user, err := nkeys.CreateUser()
	testkit.Must(t, err)
	public, err := user.PublicKey()
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "nats.conf")
	config += "\nauthorization { users: [ { nkey: " + public + " } ] }"
	testkit.Must(t, os.WriteFile(path, []byte(config), 0o600))
	options := Options{Listen: "127.0.0.1:-1", StoreDir: dir, ConfigFile: path, free: func(string) (int64, error) { return v.free.Load(), nil }}
	if v.Server, err = Start(options, slog.New(slog.NewTextHandler(&v.log, nil))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Shutdown)
	v.stop() // the test looks after the storage
	nc, err := nats.Connect(v.ClientURL(), nats.Nkey(public, user.Sign), nats.Timeout(testkit.Patience),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { v.lost.Add(1) }))
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	if v.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return v
}

// declare declares a stream in files of 32 kB.
func (v *volume) declare() {
	v.t.Helper()
	config := jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 100_000}
	testkit.Must(v.t, errIn(v.js.CreateStream(v.t.Context(), config)))
}

// publish publishes 8 kB.
func (v *volume) publish() error {
	return v.publishWithin(testkit.Patience)
}

// publishWithin is publish where no answer is expected: a server that cannot write a stream gives none.
func (v *volume) publishWithin(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(v.t.Context(), wait)
	defer cancel()
	_, err := v.js.Publish(ctx, "s", make([]byte, 8<<10))
	return err
}

func TestTheLimitIsTheVolumeAndNotWhatIsFree(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	for _, name := range []string{"c", "a/d", "a/b/e"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, mebibyte), 0o600))
	}
	limit, err := storeLimit(dir, func(string) (int64, error) { return 5 * mebibyte, nil })
	if err != nil || limit != 7*mebibyte {
		t.Errorf("got %d, %v; want seven eighths of 3 MiB that are stored and 5 MiB that are free", limit, err)
	}
}

func TestAVolumeThatIsEnlargedIsUsedWithoutARestart(t *testing.T) {
	v := startOn(t, testkit.StoreDir(t), 64*mebibyte, "")
	v.declare()
	if _, err := v.js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 100 * mebibyte}); err == nil {
		t.Error("more is reserved than fits")
	}
	v.free.Store(512 * mebibyte)
	v.tend(t.Context())
	if _, err := v.js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 100 * mebibyte}); err != nil {
		t.Errorf("after the volume was enlarged: %v; the log is\n%s", err, &v.log)
	}
	if n := v.lost.Load(); n != 0 {
		t.Errorf("the client was disconnected %d times", n)
	}
	if !strings.Contains(v.log.String(), "nats storage limit raised") {
		t.Errorf("the log does not say so:\n%s", &v.log)
	}
	// What others write and delete on the volume is not worth a reload.
	before := strings.Count(v.log.String(), "nats storage limit raised")
	v.free.Add(mebibyte)
	v.tend(t.Context())
	if strings.Count(v.log.String(), "nats storage limit raised") != before {
		t.Error("the limit follows every byte")
	}
}

func TestALimitOfTheConfigurationStays(t *testing.T) {
	v := startOn(t, testkit.StoreDir(t), 512*mebibyte, "jetstream { max_file: 64MB }")
	v.free.Store(1024 * mebibyte)
	v.tend(t.Context())
	if now, err := v.look(); err != nil || now.limit != 64*mebibyte {
		t.Errorf("the limit is %d, %v; want that of the file", now.limit, err)
	}
}

func TestAStoreThatIsFullIsNotReady(t *testing.T) {
	v := startOn(t, testkit.StoreDir(t), mebibyte, "")
	testkit.Must(t, errIn(v.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})))
	if err := v.Ready(); err != nil {
		t.Errorf("an empty store: %v", err)
	}
	var full *jetstream.APIError
	for range 200 {
		if err := v.publish(); errors.As(err, &full) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if full == nil {
		t.Fatal("the store takes more than its volume")
	}
	v.tend(t.Context())
	if err := v.Ready(); err == nil || !strings.Contains(err.Error(), "no space for messages") {
		t.Errorf("a full store: %v", err)
	}
}

func TestJetStreamIsRestartedAfterAnIOErrorWhenThereIsSpace(t *testing.T) {
	dir := testkit.StoreDir(t)
	v := startOn(t, dir, 64*mebibyte, "")
	v.declare()
	testkit.Must(t, v.publish())
	files := filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs")
	testkit.Must(t, os.Rename(files, files+".away"))
	testkit.Must(t, os.WriteFile(files, nil, 0o600))
	// At first it writes to a file that is open.
	testkit.Eventually(t, "a write fails", func() bool {
		_ = v.publishWithin(2 * time.Second)
		now, err := v.look()
		return err == nil && now.fault != nil && strings.Contains(now.fault.Error(), "write error")
	})
	v.free.Store(0)
	v.tend(t.Context())
	if err := v.Ready(); err == nil || !strings.Contains(err.Error(), "write error") {
		t.Errorf("ready: %v, want a write error", err)
	}
	if v.publishWithin(2*time.Second) == nil {
		t.Error("it was restarted without space")
	}
	testkit.Must(t, os.Remove(files))
	testkit.Must(t, os.Rename(files+".away", files))
	v.free.Store(64 * mebibyte)
	for range 2 {
		v.tend(t.Context())
	}
	if err := v.Ready(); err != nil {
		t.Errorf("ready: %v; the log is\n%s", err, &v.log)
	}
	if err := v.publish(); err != nil {
		t.Errorf("publishing: %v; the log is\n%s", err, &v.log)
	}
	stream, err := v.js.Stream(t.Context(), "S")
	testkit.Must(t, err)
	if _, err := stream.GetMsg(t.Context(), 1); err != nil {
		t.Errorf("what was stored is lost: %v", err)
	}
}
