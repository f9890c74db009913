package openbao

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestWhatIsMeasuredOfStoresHasTheLabelsOfItsDefinition(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	m, err := newMetrics(meter)
	must(t, err)
	heard, silent := newStatus(slog.New(slog.DiscardHandler), time.Now), newStatus(slog.New(slog.DiscardHandler), time.Now)
	heard.noteLine(time.Unix(100, 0))
	heard.notePoll(time.Unix(200, 0))
	must(t, m.watch(meter, map[string]*status{"heard": heard, "silent": silent}))
	m.countLine(t.Context(), "heard", used)
	m.countPoll(t.Context(), "heard", "success")

	got := measuredBy(t, reader)
	want := map[string]int64{
		"keyturn.openbao.audit.lines{result=" + string(used) + ",store=heard}": 1,
		"keyturn.openbao.polls{result=success,store=heard}":                    1,
		"keyturn.openbao.audit.last{store=heard}":                              100,
		"keyturn.openbao.poll.last{store=heard}":                               200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// measuredBy returns what was measured, by its name and labels.
func measuredBy(t *testing.T, reader sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	must(t, reader.Collect(context.WithoutCancel(t.Context()), &collected))
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
		o.AuditListen, o.AuditTokenFile = "127.0.0.1:0", write(t, "tokens", "heard "+goodToken+"\nposts "+otherToken+"\n")
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
	if diff := cmp.Diff(want, measuredBy(t, r.reader)); diff != "" {
		t.Errorf("of stores that send, of which one has, and of one that does not (-want +got):\n%s", diff)
	}
}
