package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestStatus_MountsInAuditLinesHideNothing(t *testing.T) {
	log, now := &testkit.Log{}, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := newStatus(log.Logger(), func() time.Time { return now })
	forge := func(prefix string) {
		for n := range 2 * maxMountFailures {
			s.noteNamedFailure(t.Context(), s.audited, auditedIn(fmt.Sprintf("%s-%d", prefix, n)), errNoMount)
		}
	}
	logged := func(text string) int { return strings.Count(log.String(), text) }
	forge("first")
	if got := logged("reason=no-mount"); got != maxMountFailures {
		t.Errorf("%d mounts are logged, want %d", got, maxMountFailures)
	}
	sealed := &statusError{code: 503, message: "Vault is sealed"}
	s.noteFailure(t.Context(), "secret", sealed)
	s.noteFailure(t.Context(), auditedPaths, sealed)
	if got := logged("Vault is sealed"); got != 2 {
		t.Errorf("it is logged %d times that the store is sealed, want for the mount and for the audited paths:\n%s", got, log)
	}
	s.noteSuccess(t.Context(), "secret")
	if logged("store can be read again") != 1 {
		t.Errorf("want the log to tell that it can be read again:\n%s", log)
	}

	// Room is made by a success, and after mountFailureAge.
	s.noteSuccess(t.Context(), auditedIn("first-0"))
	forge("second")
	if got := logged("of second-"); got != 1 {
		t.Errorf("%d other mounts are logged after one works again, want 1", got)
	}
	now = now.Add(mountFailureAge)
	forge("third")
	if got := logged("of third-"); got != maxMountFailures {
		t.Errorf("%d mounts are logged an hour later, want %d", got, maxMountFailures)
	}
	if len(s.audited) != maxMountFailures || len(s.failures) != maxMountFailures+1 {
		t.Errorf("%d mounts and %d failures are remembered", len(s.audited), len(s.failures))
	}
}

func TestWhatIsMeasuredOfStoresHasTheLabelsOfItsDefinition(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	m, err := newMetrics(meter)
	testkit.Must(t, err)
	heard, silent := newStatus(slog.New(slog.DiscardHandler), time.Now), newStatus(slog.New(slog.DiscardHandler), time.Now)
	heard.noteLine(time.Unix(100, 0))
	heard.notePoll(time.Unix(200, 0))
	testkit.Must(t, m.watch(meter, map[string]*status{"heard": heard, "silent": silent}))
	m.countLine(t.Context(), "heard", used)
	m.countPoll(t.Context(), "heard", "success")

	got := measuredBy(t, reader)
	want := map[string]int64{
		"keyturn.openbao.audit.lines{result=" + string(used) + ",store=heard}": 1,
		"keyturn.openbao.polls{result=success,store=heard}":                    1,
		"keyturn.openbao.audit.last{store=heard}":                              100,
		"keyturn.openbao.poll.last{store=heard}":                               200,
	}
	wantEqual(t, "measured", want, got)
}

// measuredBy returns what was measured, by its name and labels.
func measuredBy(t *testing.T, reader sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	testkit.Must(t, reader.Collect(context.WithoutCancel(t.Context()), &collected))
	got := map[string]int64{}
	for _, scope := range collected.ScopeMetrics {
		for _, measured := range scope.Metrics {
			points, ok := measured.Data.(metricdata.Gauge[int64])
			if sum, isSum := measured.Data.(metricdata.Sum[int64]); isSum {
				points.DataPoints, ok = sum.DataPoints, true
			}
			if !ok {
				t.Fatalf("%s is a %T", measured.Name, measured.Data)
			}
			for _, point := range points.DataPoints {
				got[measured.Name+"{"+point.Attributes.Encoded(attribute.DefaultEncoder())+"}"] = point.Value
			}
		}
	}
	return got
}

func TestTheAuditOfAStoreIsSilentSinceTheStartUntilItsFirstLine(t *testing.T) {
	now := time.Unix(1000, 0)
	config := "stores:\n" +
		"- {name: heard, address: 'https://heard.example:8200', auth: {token: a}}\n" +
		"- {name: posts, address: 'https://posts.example:8200', auth: {token: a}}\n" +
		"- {name: other, address: 'https://other.example:8200', auth: {token: a}}\n"
	r := newRig(t, config, func(o *Options) {
		o.receive(t, "tokenFile: "+write(t, "tokens", "heard "+goodToken+"\nposts "+otherToken+"\n"))
		o.Now = func() time.Time { return now }
	})
	for _, p := range r.feed.pipelines {
		if p.config.Name == "heard" {
			p.status.noteLine(time.Unix(1200, 0))
		}
	}
	want := map[string]int64{
		"keyturn.openbao.audit.last{store=heard}": 1200, "keyturn.openbao.audit.last{store=posts}": 1000,
	}
	wantEqual(t, "of stores that send, of which one has, and of one that does not", want, measuredBy(t, r.reader))
}
