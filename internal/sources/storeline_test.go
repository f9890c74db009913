package sources

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/tests/testkit"
)

// observed has the observations of a store whose lines are posted. The store has only mounts of KV v1, so no line makes the watcher read a secret.
type observed struct {
	client       *http.Client
	address      string
	observations chan openbao.Observation
	sent         int
}

func observe(f *testing.F) *observed {
	f.Helper()
	o, listening := &observed{client: &http.Client{Transport: &http.Transport{}}, observations: make(chan openbao.Observation)}, make(chan string, 1)
	options := openbao.DefaultOptions()
	options.ConfigFile = filepath.Join(f.TempDir(), "stores.yaml")
	tokens := filepath.Join(f.TempDir(), "tokens")
	options.AuditListen = "127.0.0.1:0"
	options.Logger, options.Meter = slog.New(slog.DiscardHandler), metricnoop.NewMeterProvider().Meter("")
	const plain = `{"type":"kv","options":{"version":"1"}}`
	options.Transport = answers{"/v1/sys/internal/ui/mounts": `{"data":{"secret":{"kv/":` + plain + `,"kv1/":` + plain + `,"end/":` + plain + `}}}`}
	options.Now = func() time.Time { return minute(0) }
	options.Listen = func(ctx context.Context, network, at string) (net.Listener, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, network, at)
		if err == nil {
			listening <- listener.Addr().String()
		}
		return listener, err
	}
	config := "stores: [{name: bao, address: 'http://bao', auth: {token: a}}]\naudit: {tokenFile: " + tokens + "}"
	testkit.Must(f, os.WriteFile(options.ConfigFile, []byte(config), 0o600))
	testkit.Must(f, os.WriteFile(tokens, []byte(auditToken), 0o600))
	feed, err := openbao.New(options)
	testkit.Must(f, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- feed.Run(ctx, func(seen openbao.Observation) bool {
			select {
			case o.observations <- seen:
			case <-ctx.Done():
			}
			return true
		})
	}()
	f.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	o.address = <-listening
	f.Cleanup(o.client.CloseIdleConnections)
	return o
}

// of returns the observations of a line. Lines that come together are handled in any order, so it waits for those of two further lines, of which the
// second is sent once the first is observed.
func (o *observed) of(t *testing.T, line []byte) []openbao.Observation {
	t.Helper()
	var list []openbao.Observation
	for range 2 {
		o.sent++
		// A line of a request that was seen before is ignored.
		line = bytes.ReplaceAll(line, []byte(`"id":"`), fmt.Appendf(nil, `"id":"%d-`, o.sent))
		end := strconv.Itoa(o.sent)
		postLines(t, o.client, o.address, fmt.Appendf(nil, "%s\n"+
			`{"type":"response","request":{"operation":"update","mount_type":"kv","mount_point":"end/","path":"end/%s"}}`, line, end))
		for ended := false; !ended; {
			seen := testkit.Receive(t, "the observation of the line that follows", o.observations, func() string { return string(line) })
			ended = seen.Path.Mount == "end" && seen.Path.Path == end
			if !ended {
				list = append(list, seen)
			}
		}
		line = nil
	}
	return list
}

// FuzzAuditLine sends lines of KV v1, which alone are observations. No line may cause an event that cannot be published, or one that hides later
// writes.
func FuzzAuditLine(f *testing.F) {
	log, err := os.ReadFile("openbao/testdata/openbao-2.6.2.jsonl")
	testkit.Must(f, err)
	for line := range bytes.Lines(log) {
		f.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
	write := func(id, at string) {
		f.Add(fmt.Appendf(nil, `{"time":%q,"type":"response","request":{"id":%q,"operation":"update","mount_type":"kv","mount_point":"kv/",`+
			`"path":"kv/shop/db"}}`, at, id))
	}
	for _, at := range []string{
		"1960-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2500-01-01T00:00:00Z",
		"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
	} {
		write("1", at)
	}
	for _, id := range []string{" 1 ", " ", strings.Repeat("\u00e9", 200)} {
		write(id, "2026-03-14T15:00:00Z")
	}
	for _, path := range []string{" db ", "%2F", "\u00a0", strings.Repeat("\u00e9", 500), strings.Repeat("%", 1000)} {
		f.Add(fmt.Appendf(nil, `{"time":"2026-03-14T15:00:00Z","type":"response","request":{"id":"1","operation":"update","mount_type":"kv",`+
			`"mount_point":"kv/","path":%q}}`, "kv/"+path))
	}
	store, ring := observe(f), ringOf(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, seen := range store.of(t, line) {
			earlier := written(7, "update", -5)
			earlier.Path = seen.Path
			recorded, _ := kinds.AssessStore(ring, nil, earlier, time.Time{})
			for _, before := range []*kinds.LastEvent{nil, publishedOf(t, recorded, earlier.Received)} {
				change, ok := kinds.AssessStore(ring, before, seen, time.Time{})
				if !ok {
					continue
				}
				next := openbao.Observation{
					Path: storePath, Engine: events.EngineKV, State: openbao.Live, At: minute(5), Request: "next", Operation: "update", Received: minute(5),
				}
				after := publishedOf(t, change, seen.Received)
				for _, later := range []openbao.Observation{written(1, "create", 5), written(8, "update", 5), next} {
					if kinds.IsKnown(after, later) {
						t.Errorf("%+v hides %+v", seen, later)
					}
				}
			}
		}
	})
}

// publishedOf returns the event of a change as the stream has it, and fails the test if it cannot be published.
func publishedOf(t *testing.T, change events.Change, at time.Time) *kinds.LastEvent {
	t.Helper()
	change.Cluster, change.Time = testCluster, at
	encoded, err := change.Encode()
	if err != nil {
		t.Fatalf("%+v: %v", change, err)
	}
	header, data, err := encoded.Message()
	if err != nil {
		t.Fatalf("%+v: %v", change, err)
	}
	read, err := events.NewStored(encoded.Subject, 1, at, header, data).Change()
	if err != nil {
		t.Fatalf("%+v: %v", change, err)
	}
	return mustLast(t, read)
}
