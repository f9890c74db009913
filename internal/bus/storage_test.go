package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startSmall starts a server with a limit of its store, and returns it.
func startSmall(t *testing.T, dir, limit string) *ownServer {
	t.Helper()
	return startWith(t, dir, "jetstream { max_file: "+limit+" }")
}

// startWith starts a server with a configuration, and returns it.
func startWith(t *testing.T, dir, config string) *ownServer {
	t.Helper()
	s := newServer(t, dir)
	s.configure(config)
	s.start("127.0.0.1:-1")
	return s
}

// configure writes the configuration with which the server starts next.
func (s *ownServer) configure(config string) {
	s.t.Helper()
	s.config = filepath.Join(s.t.TempDir(), "nats.conf")
	testkit.Must(s.t, os.WriteFile(s.config, []byte(config), 0o600))
}

func TestASmallServerGetsSmallStreams(t *testing.T) {
	s := startSmall(t, testkit.StoreDir(t), "50MB")
	for range 2 { // The second time they exist.
		testkit.Must(t, Declare(t.Context(), s.jetstream(), Declared(1)))
	}
	for name, want := range map[string]int64{events.StreamHistory: 8 << 20, events.StreamDeadLetters: 8 << 20} {
		stream, err := s.jetstream().Stream(t.Context(), name)
		testkit.Must(t, err)
		if got := stream.CachedInfo().Config.MaxBytes; got != want {
			t.Errorf("%s: reserves %d bytes, want %d", name, got, want)
		}
	}
	mustPublish(t, s.bus(), version("db", "1"), 0)
}

func TestAFullStreamSaysSoOnceAndRecovers(t *testing.T) {
	s := startSmall(t, testkit.StoreDir(t), "100KB")
	js := s.jetstream()
	for _, config := range Declared(1) {
		config.MaxBytes = -1 // more than fits could not be reserved
		testkit.Must(t, errIn(js.CreateStream(t.Context(), config)))
	}
	b, log := s.bus(), &testkit.Log{}
	b.logger = log.Logger()
	publish := func(i int) error {
		return errors.Join(b.PublishOutcomes(t.Context(), outcomeFor(fmt.Sprintf("w%d", i)))...)
	}
	var refused, last int
	for i := 0; refused < 5; i++ {
		if i == 10_000 {
			t.Fatal("nothing is refused")
		}
		if err := publish(i); err != nil && !IsSilence(err) {
			refused, last = refused+1, i
		}
	}
	if _, err := answered(t, b, version("db", "1"), 0); !isStorage(err) {
		t.Errorf("a change: got %v, want that there is no storage", err)
	}
	for _, name := range []string{events.StreamHistory, events.StreamChanges} {
		if n := strings.Count(log.String(), " stream="+name+" "); n != 1 {
			t.Errorf("the log says so of %s %d times, want once:\n%s", name, n, log)
		}
	}
	stream, err := js.Stream(t.Context(), events.StreamHistory)
	testkit.Must(t, err)
	testkit.Must(t, stream.Purge(t.Context()))
	testkit.Eventually(t, "publishing resumes", func() bool { return publish(last) == nil })
}

// withKeys is a version with many keys, whose message has some kilobytes.
func withKeys(name, resourceVersion string) events.Change {
	c := version(name, resourceVersion)
	for i := range 200 {
		c.Keys[fmt.Sprintf("key-number-%d", i)] = events.Key{Fingerprint: sum("5")}
	}
	return c
}

func TestAStateThatIsFullRefusesWhatIsNewAndKeepsTheRest(t *testing.T) {
	s := sharedServer(t)
	js := s.jetstream()
	testkit.Must(t, js.DeleteStream(t.Context(), events.StreamChanges))
	createStream(t, js, limited(maxMessage))
	b, log := s.bus(), &testkit.Log{}
	b.logger = log.Logger()
	now := time.Now()
	b.now = func() time.Time { return now }
	said := func(want int) {
		t.Helper()
		if n := strings.Count(log.String(), "nats has no storage left"); n != want {
			t.Errorf("the log says so %d times, want %d:\n%s", n, want, log)
		}
	}

	fill := func(prefix string) (kept uint64) {
		t.Helper()
		for {
			_, err := answered(t, b, withKeys(fmt.Sprint(prefix, kept), "1"), 0)
			if isStorage(err) && strings.Contains(err.Error(), "maximum bytes exceeded") {
				return kept
			}
			testkit.Must(t, err)
			kept++
		}
	}
	kept := fill("s")
	for range 3 {
		fill("further")
	}
	mustPublish(t, b, version("s0", "2"), 1) // It is smaller than what it replaces.
	said(1)
	extent, err := answer(t, func() (Extent, error) { return b.Extent(t.Context()) })
	testkit.Must(t, err)
	if extent.Events != kept || kept < 2 {
		t.Errorf("CHANGES has the state of %d sources, want all %d", extent.Events, kept)
	}

	now = now.Add(sayAgain)
	mustPublish(t, b, version("s1", "2"), 2)
	left := fill("later")
	said(2)
	purge(t, js)
	mustPublish(t, b, withKeys(fmt.Sprint("later", left), "1"), 0)
}

func TestTheStreamsFitAnAccountThatDemandsTheirSize(t *testing.T) {
	s := startWith(t, testkit.StoreDir(t), `
		jetstream { max_file: 2G }
		accounts { HOSTED { jetstream { max_file: 1G, max_streams: 3, max_bytes_required: true }, users: [{ user: a, password: a }] } }`)
	s.url = func() string { return strings.Replace(s.ClientURL(), "nats://", "nats://a:a@", 1) }
	js := s.jetstream()
	for _, name := range []string{"changes-limited", "history", "deadletters"} {
		content, err := os.ReadFile("../../deploy/nats/" + name + ".json")
		testkit.Must(t, err)
		var config jetstream.StreamConfig
		testkit.Must(t, json.Unmarshal(content, &config))
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	mustPublish(t, s.bus(), version("db", "1"), 0)
}

func outcomeFor(workload string) events.Outcome {
	o := outcome()
	o.Workload.Name, o.Workload.UID = workload, "uid-"+workload
	return o
}
