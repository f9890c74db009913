package openbao

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/tests/testkit"
)

// rig is a feed with its log, its metrics and its observations.
type rig struct {
	feed     *Feed
	options  Options
	sink     chan Observation
	log      *testkit.Log
	reader   *sdkmetric.ManualReader
	mu       sync.Mutex
	listened []string
}

// newRig returns a feed of the configuration.
func newRig(t *testing.T, config string, change func(*Options)) *rig {
	t.Helper()
	r := &rig{sink: make(chan Observation, 10_000), log: &testkit.Log{}, reader: sdkmetric.NewManualReader()}
	r.options = DefaultOptions()
	r.options.ConfigFile = write(t, "config.yaml", config)
	r.options.Logger = r.log.Logger()
	r.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)).Meter("test")
	r.options.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, network, address)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.listened = append(r.listened, listener.Addr().String())
		}
		return listener, err
	}
	if change != nil {
		change(&r.options)
	}
	var err error
	r.feed, err = New(r.options)
	testkit.Must(t, err)
	return r
}

// start runs the feed until the test ends, or stop is called.
func (r *rig) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.feed.Run(ctx, func(o Observation) bool {
			select {
			case r.sink <- o:
				return true
			default:
				return false
			}
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// address returns the address of the first listener.
func (r *rig) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.listened) == 0 {
		return ""
	}
	return r.listened[0]
}

// next waits for the next observation.
func (r *rig) next(t *testing.T) Observation {
	t.Helper()
	return testkit.Receive(t, "an observation", r.sink, r.log.String)
}

// nextWhere waits for the next observation of the path in that state and skips others.
func (r *rig) nextWhere(t *testing.T, path string, state State) Observation {
	t.Helper()
	for {
		if o := r.next(t); o.Path.Path == path && o.State == state {
			return o
		}
	}
}

// nextVersion waits until that version of the path is observed.
func (r *rig) nextVersion(t *testing.T, path string, version int64) {
	t.Helper()
	for r.nextWhere(t, path, Live).Version != version {
		continue
	}
}

// lines returns the number of audit lines with that result.
func (r *rig) lines(t *testing.T, result verdict) int64 {
	t.Helper()
	return r.count(t, "keyturn.openbao.audit.lines", string(result))
}

// count returns a count of that result, of all stores.
func (r *rig) count(t *testing.T, name, result string) (total int64) {
	t.Helper()
	for measured, value := range measuredBy(t, r.reader) {
		if strings.HasPrefix(measured, name+"{result="+result+",") {
			total += value
		}
	}
	return total
}

// afterSamples is a clock that begins soon after the samples of OpenBao were recorded, so that their lines are not late.
func afterSamples() func() time.Time {
	began := time.Now()
	return func() time.Time { return time.Date(2026, 11, 20, 11, 4, 0, 0, time.UTC).Add(time.Since(began)) }
}

// write creates a file.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// samples returns the lines of a real audit log, by "<type> <operation> <path>", with a # for each earlier line of that name.
func samples(t testing.TB, file string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	testkit.Must(t, err)
	found := map[string][]byte{}
	for line := range bytes.Lines(content) {
		var about struct {
			Type    string
			Request struct{ Operation, Path string }
		}
		testkit.Must(t, json.Unmarshal(line, &about))
		name := about.Type + " " + about.Request.Operation + " " + about.Request.Path
		for found[name] != nil {
			name += "#"
		}
		found[name] = bytes.TrimSpace(line)
	}
	return found
}

// wantEqual compares two values, with all fields of structs.
func wantEqual(t testing.TB, what string, want, got any) {
	t.Helper()
	testkit.WantEqual(t, what, want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
}

// orElse returns the value, or the fallback if it is empty.
func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
