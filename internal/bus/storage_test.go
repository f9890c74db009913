package bus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startSmall starts a server with a limit of its store, and returns it.
func startSmall(t *testing.T, dir, limit string) *ownServer {
	t.Helper()
	s := newServer(t, dir)
	s.config = filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(s.config, []byte("jetstream { max_file: "+limit+" }"), 0o600))
	s.start("127.0.0.1:-1")
	return s
}

func TestASmallServerGetsSmallStreams(t *testing.T) {
	s := startSmall(t, testkit.StoreDir(t), "50MB")
	for range 2 { // The second time they exist.
		must(t, Declare(t.Context(), s.jetstream(), 1))
	}
	for name, want := range map[string]int64{events.StreamHistory: 8 << 20, events.StreamDeadLetters: 8 << 20} {
		stream, err := s.jetstream().Stream(t.Context(), name)
		must(t, err)
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
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	b, log := s.bus(), &testkit.Log{}
	b.logger = log.Logger()
	const full, again = "nats has no storage left", "nats has storage again"
	publish := func(i int) error {
		return errors.Join(b.PublishOutcomes(t.Context(), outcomeFor(fmt.Sprintf("w%d", i)))...)
	}
	var refused int
	for i := 0; refused < 5; i++ {
		if i == 10_000 {
			t.Fatal("nothing is refused")
		}
		if err := publish(i); err != nil && !IsSilence(err) {
			refused++
		}
	}
	if _, err := answered(t, b, version("db", "1"), 0); !isStorage(err) {
		t.Errorf("a change: got %v, want that there is no storage", err)
	}
	if n := strings.Count(log.String(), full); n != 1 || strings.Contains(log.String(), again) {
		t.Errorf("the log says so %d times, want once:\n%s", n, log)
	}
	stream, err := js.Stream(t.Context(), events.StreamHistory)
	must(t, err)
	must(t, stream.Purge(t.Context()))
	testkit.Eventually(t, "publishing resumes", func() bool { return publish(20_000) == nil })
	if strings.Count(log.String(), again) != 1 || strings.Count(log.String(), full) != 1 {
		t.Errorf("the log does not say once that there is storage again:\n%s", log)
	}
}

func outcomeFor(workload string) events.Outcome {
	o := outcome()
	o.Workload.Name, o.Workload.UID = workload, "uid-"+workload
	return o
}
