package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }

// rig has the streams of a cluster, and a folder.
type rig struct {
	*testing.T
	// own declares the streams and publishes, reader copies.
	own, reader *nats.Conn
	js          jetstream.JetStream
	bus         *bus.Bus
	dir         string
	published   int
}

func newRig(t *testing.T, own, reader *nats.Conn) *rig {
	t.Helper()
	r := &rig{T: t, own: own, reader: reader, dir: t.TempDir()}
	var err error
	if r.js, err = jetstream.New(own, jetstream.WithDefaultTimeout(testkit.Patience/2)); err != nil {
		t.Fatal(err)
	}
	r.open()
	return r
}

// open opens the streams.
func (r *rig) open() {
	r.Helper()
	var err error
	if r.bus, err = bus.Open(r.Context(), r.own, "prod", nil); err != nil {
		r.Fatal(err)
	}
}

// shared returns a rig with an account of its own on the server of this package.
func shared(t *testing.T) *rig {
	t.Helper()
	connection, err := nats.Connect(natstest.Account(t), nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	t.Cleanup(connection.Close)
	return newRig(t, connection, connection)
}

// publish publishes outcomes of one workload after the other.
func (r *rig) publish(count int) {
	r.Helper()
	for range count {
		r.published++
		outcome := events.Outcome{
			Cluster: "prod", Verb: events.VerbFailed, Time: time.Date(2026, 3, 14, 15, 9, 26, r.published, time.UTC), ResourceVersion: "8",
			Cause: "uid/7", Revision: "r1", Reason: "deadline-exceeded", Message: "It is not ready.",
			Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: strings.Repeat("a", r.published)},
		}
		natstest.Publish(r.T, func() error { return errors.Join(r.bus.PublishOutcomes(r.Context(), outcome)...) })
	}
}

// pass copies what is new, and repeats what got no answer.
func (r *rig) pass() error {
	r.Helper()
	var err error
	testkit.Eventually(r.T, "the server answers", func() bool {
		err = pass(r.Context(), r.reader, events.StreamHistory, r.dir)
		return err == nil || errors.Is(err, errSetBack)
	}, func() string { return err.Error() })
	return err
}

// ships copies what is new, and compares all sequences in the files.
func (r *rig) ships(want ...uint64) {
	r.Helper()
	testkit.Must(r, r.pass())
	var got []uint64
	for _, one := range r.records() {
		got = append(got, one.Sequence)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("sequences (-want +got):\n%s", diff)
	}
}

func (r *rig) records() (all []record) {
	r.Helper()
	paths, err := filesIn(r.dir)
	testkit.Must(r, err)
	for _, path := range paths {
		if _, err := readFile(path, func(one record) { all = append(all, one) }); err != nil {
			r.Fatal(err)
		}
	}
	return all
}

// lines returns the lines of all files, each with its end.
func (r *rig) lines() []string {
	r.Helper()
	paths, err := filesIn(r.dir)
	testkit.Must(r, err)
	var all string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		testkit.Must(r, err)
		all += string(content)
	}
	return strings.SplitAfter(all, "\n")
}

// newest returns the path of the newest file.
func (r *rig) newest() string {
	r.Helper()
	paths, err := filesIn(r.dir)
	if err != nil || len(paths) == 0 {
		r.Fatalf("got the files %v, %v", paths, err)
	}
	return paths[len(paths)-1]
}

// complains checks what is said to be missing in the files.
func (r *rig) complains(want string) {
	r.Helper()
	got := ""
	if err := checkFolder(r.dir); err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.Contains(got, want) {
		r.Errorf("got %q, want %q", got, want)
	}
}

// lose has the stream lose a message, as whoever has taken over the server can.
func (r *rig) lose(sequence uint64) {
	r.Helper()
	natstest.Publish(r.T, func() error {
		stream, err := r.js.Stream(r.Context(), events.StreamHistory)
		if err == nil {
			err = stream.DeleteMsg(r.Context(), sequence)
		}
		if errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return nil // It was deleted before the answer was lost.
		}
		return err
	})
}

func TestEachEventArrivesOnceInOrder(t *testing.T) {
	r := shared(t)
	r.ships()
	r.publish(3)
	r.ships(1, 2, 3)
	r.ships(1, 2, 3)
	r.publish(2)
	r.ships(1, 2, 3, 4, 5)
	r.complains("")

	records := r.records()
	for i, one := range records {
		if want := strings.Repeat("a", i+1) + "/r1/failed"; len(one.Headers["ce-id"]) != 1 || one.Headers["ce-id"][0] != want {
			t.Errorf("the id of event %d is %v, want %s", i, one.Headers["ce-id"], want)
		}
		if !strings.Contains(string(one.Data), `"It is not ready."`) || !strings.HasPrefix(one.Subject, "keyturn.history.v1.prod.rollout.") {
			t.Errorf("event %d, on %s, has the data %s", i, one.Subject, one.Data)
		}
	}
}

func TestAnEventThatIsRemovedBeforeItIsCopiedLeavesAGap(t *testing.T) {
	r := shared(t)
	r.publish(5)
	r.lose(2)
	r.lose(3)
	r.ships(1, 4, 5)
	r.complains("sequences 2 to 3 are missing")
	// The files keep what the stream loses.
	r.lose(4)
	r.ships(1, 4, 5)
}

func TestAnEventThatIsRemovedFromTheFilesLeavesAGap(t *testing.T) {
	r := shared(t)
	r.publish(3)
	r.ships(1, 2, 3)
	lines := r.lines()
	for _, test := range []struct{ name, content, want string }{
		{"removed", lines[0] + lines[2], "sequences 2 to 2 are missing"},
		{"doubled", lines[0] + lines[1] + lines[1] + lines[2], "sequence 2 comes after 2"},
		{"out of order", lines[0] + lines[2] + lines[1], "sequence 2 comes after 3"},
		{"of no JSON", lines[0] + "rubbish\n", "the line at byte "},
	} {
		t.Run(test.name, func(t *testing.T) {
			forged := &rig{T: t, dir: t.TempDir()}
			testkit.Must(t, os.WriteFile(filepath.Join(forged.dir, filepath.Base(r.newest())), []byte(test.content), 0o600))
			forged.complains(test.want)
		})
	}
}

func TestALineThatACrashHasCutIsWrittenAgain(t *testing.T) {
	r := shared(t)
	r.publish(3)
	r.ships(1, 2, 3)
	content, err := os.ReadFile(r.newest())
	testkit.Must(t, err)
	testkit.Must(t, os.Truncate(r.newest(), int64(len(content)-10)))
	r.ships(1, 2, 3)
	r.complains("")
	after, err := os.ReadFile(r.newest())
	if err != nil || string(after) != string(content) {
		t.Errorf("got %v and\n%s\nwant\n%s", err, after, content)
	}
}

func TestEachDayHasAFile(t *testing.T) {
	r := shared(t)
	r.publish(3)
	r.ships(1, 2, 3)
	// As if these were of days long ago.
	lines := r.lines()
	paths, err := filesIn(r.dir)
	testkit.Must(t, err)
	for _, path := range paths {
		testkit.Must(t, os.Remove(path))
	}
	for name, content := range map[string]string{"history-2001-01-01.jsonl": lines[0], "history-2001-01-02.jsonl": lines[1] + lines[2]} {
		testkit.Must(t, os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
	}
	r.publish(1)
	r.ships(1, 2, 3, 4)
	if got := r.newest(); got <= filepath.Join(r.dir, "history-2001-01-02.jsonl") {
		t.Errorf("the newest file is %s, want one of today", got)
	}
	// What was shipped may go, but for the newest.
	testkit.Must(t, os.Remove(filepath.Join(r.dir, "history-2001-01-01.jsonl")))
	r.ships(2, 3, 4)
	r.complains("")
}

func TestAStreamThatIsCreatedAgainBeginsAtOneAgain(t *testing.T) {
	r := shared(t)
	r.publish(2)
	r.ships(1, 2)
	again := func() {
		// A NATS server still writes the last messages of a stream that it deletes, and one of the same name finds them.
		testkit.Await(t, "the stream is created again, and empty", func(ctx context.Context) bool {
			if err := r.js.DeleteStream(ctx, events.StreamHistory); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
				return false
			}
			if err := bus.Declare(ctx, r.js, bus.Declared(1)); err != nil {
				return false
			}
			stream, err := r.js.Stream(ctx, events.StreamHistory)
			return err == nil && stream.CachedInfo().State.LastSeq == 0
		})
		r.open()
	}
	again()
	r.publish(3)
	r.ships(1, 2, 1, 2, 3)
	r.complains("")
	again()
	r.publish(2)
	r.lose(1)
	r.ships(1, 2, 1, 2, 3, 2)
	r.complains("sequences 1 to 1 are missing")
}

func TestAStreamThatWasSetBackIsNotCopiedInto(t *testing.T) {
	r := shared(t)
	r.publish(2)
	r.ships(1, 2)
	last := r.records()[1]
	files, err := openFolder(r.dir)
	testkit.Must(t, err)
	last.Sequence = 9 // As if a copy of the volume had been restored since.
	testkit.Must(t, errors.Join(files.write(last, last.Data), files.close()))
	if err := r.pass(); !errors.Is(err, errSetBack) || !strings.Contains(err.Error(), "ends at 2, and the files at 9") {
		t.Errorf("got %v, want that the stream was set back", err)
	}
}

// TestTheReaderOfAnInstallationMayCopyTheHistory uses the server, the users and the certificate of the actuator's pod.
func TestTheReaderOfAnInstallationMayCopyTheHistory(t *testing.T) {
	keys := t.TempDir()
	testkit.SetNATSVariables(t, keys, "watcher", "actuator", "reader")
	server, err := embedded.Start(embedded.Options{StoreDir: testkit.StoreDir(t), ConfigFile: "../../deploy/programs/nats.conf"}, nil)
	testkit.Must(t, err)
	t.Cleanup(server.Shutdown)
	ca := filepath.Join(keys, "ca.crt")
	own, err := bus.Connect(t.Context(), bus.ConnectOptions{
		URL: server.ClientURL(), Cluster: "prod", Role: "actuator", Name: "test", CredsFile: filepath.Join(keys, "actuator.nk"), CAFile: ca,
	}, server.ClientOption())
	testkit.Must(t, err)
	t.Cleanup(own.Close)
	js, err := jetstream.New(own, jetstream.WithDefaultTimeout(testkit.Patience/2))
	if err == nil {
		err = bus.Declare(t.Context(), js, bus.Declared(1))
	}
	testkit.Must(t, err)
	options, err := optionsOf(filepath.Join(keys, "reader.nk"), ca)
	testkit.Must(t, err)
	reader, err := nats.Connect(server.ClientURL(), append(options, nats.Timeout(testkit.Patience))...)
	testkit.Must(t, err)
	t.Cleanup(reader.Close)
	r := newRig(t, own, reader)
	r.publish(3)
	r.ships(1, 2, 3)
	r.publish(1)
	r.ships(1, 2, 3, 4)
	r.complains("")
}

func TestItFollowsUntilItIsStopped(t *testing.T) {
	url := natstest.Account(t)
	connection, err := nats.Connect(url, nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	t.Cleanup(connection.Close)
	r := newRig(t, connection, connection)
	stop := testkit.Run(t, "evidence", func(ctx context.Context) error {
		return follow(ctx, url, "", "", events.StreamHistory, r.dir, 10*time.Millisecond)
	})
	for want := 1; want <= 2; want++ {
		r.publish(1)
		testkit.Await(t, "the event is in the files", func(context.Context) bool { return len(r.records()) == want })
	}
	stop()
}
