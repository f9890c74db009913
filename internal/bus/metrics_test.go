package bus

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheStreamsAreMeasured(t *testing.T) {
	b, reader := smallHistory(t, 1<<20), sdkmetric.NewManualReader()
	testkit.Must(t, b.Observe(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")))
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
		got = testkit.Measured(t, reader)
		return len(got) == len(want)+len(varies)
	}, func() string { return fmt.Sprint(got) })
	for _, name := range varies {
		if got[name] <= 0 {
			t.Errorf("%s is %d, want more than nothing", name, got[name])
		}
	}
	isNonzero := func(name string, _ int64) bool { return want[name] == 0 && got[name] != 0 }
	testkit.WantEqual(t, "difference", want, got, cmpopts.IgnoreMapEntries(isNonzero))
	if left := published - got["keyturn.history.beyond.share{kept=none}"]; got["keyturn.stream.events{stream=HISTORY}"] != left {
		t.Errorf("HISTORY has %d events, want %d", got["keyturn.stream.events{stream=HISTORY}"], left)
	}
	if oldest := got["keyturn.stream.oldest{stream=HISTORY}"]; oldest > b.now().Unix() || oldest < b.now().Unix()-3600 {
		t.Errorf("the oldest event is of %d", oldest)
	}
}
