package bus

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/tests/testkit"
)

// measuredBy returns the points of a collection, by name and labels.
func measuredBy(t *testing.T, reader sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	must(t, reader.Collect(context.WithoutCancel(t.Context()), &collected))
	measured := make(map[string]int64)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, point := range points {
				measured[m.Name+"{"+point.Attributes.Encoded(attribute.DefaultEncoder())+"}"] = point.Value
			}
		}
	}
	return measured
}

func TestTheStreamsAreMeasured(t *testing.T) {
	b, reader := smallHistory(t, 1<<20), sdkmetric.NewManualReader()
	must(t, b.Observe(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")))
	b.share.half = 0
	const published = 60
	var seq uint64
	for range published {
		seq = mustPublish(t, b, version("db", fmt.Sprint(seq+1)), seq)
	}
	want := map[string]int64{
		"keyturn.stream.limit{stream=HISTORY}":      1 << 20,
		"keyturn.stream.limit{stream=DEADLETTERS}":  deadLetterBytes,
		"keyturn.stream.events{stream=CHANGES}":     1,
		"keyturn.stream.events{stream=DEADLETTERS}": 0,
		"keyturn.stream.used{stream=DEADLETTERS}":   0,
	}
	varies := []string{
		"keyturn.stream.events{stream=HISTORY}", "keyturn.stream.used{stream=HISTORY}", "keyturn.stream.used{stream=CHANGES}",
		"keyturn.stream.oldest{stream=HISTORY}", "keyturn.stream.oldest{stream=CHANGES}",
		"keyturn.history.beyond.share{kept=hour}", "keyturn.history.beyond.share{kept=none}",
	}
	// A stream that does not answer in time is left out.
	var got map[string]int64
	testkit.Await(t, "all streams are measured", func(context.Context) bool {
		got = measuredBy(t, reader)
		return len(got) == len(want)+len(varies)
	}, func() string { return fmt.Sprint(got) })
	for _, name := range varies {
		if got[name] <= 0 {
			t.Errorf("%s is %d, want more than nothing", name, got[name])
		}
	}
	isNonzero := func(name string, _ int64) bool { return want[name] == 0 && got[name] != 0 }
	wantEqual(t, "difference", want, got, cmpopts.IgnoreMapEntries(isNonzero))
	if left := published - got["keyturn.history.beyond.share{kept=none}"]; got["keyturn.stream.events{stream=HISTORY}"] != left {
		t.Errorf("HISTORY has %d events, want %d", got["keyturn.stream.events{stream=HISTORY}"], left)
	}
	if oldest := got["keyturn.stream.oldest{stream=HISTORY}"]; oldest > b.now().Unix() || oldest < b.now().Unix()-3600 {
		t.Errorf("the oldest event is of %d", oldest)
	}
}
