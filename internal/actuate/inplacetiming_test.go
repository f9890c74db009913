package actuate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// spent returns how often a time was measured and the sum of all, in seconds.
func spent(t *testing.T, reader sdkmetric.Reader, name string) (count uint64, sum float64) {
	t.Helper()
	data, _ := collect(t, reader)[name].(metricdata.Histogram[float64])
	for _, point := range data.DataPoints {
		count, sum = count+point.Count, sum+point.Sum
	}
	return count, sum
}

func TestTheDelayOfAReloadIsNoTimeThatAChangeTook(t *testing.T) {
	for name, tt := range map[string]struct {
		answer  int32
		patched uint64
	}{
		"pods that reload":     {http.StatusOK, 0},
		"pods that are rolled": {http.StatusInternalServerError, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reader := sdkmetric.NewManualReader()
				b := newTellBed(t, func(o *Options) { o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("") }, nil)
				b.answer.Store(tt.answer)
				b.change()
				b.act()
				<-time.After(2 * time.Minute)
				b.act()
				<-time.After(10 * time.Second)
				b.act()
				if len(b.patches) != 1 {
					t.Fatalf("there are %d patches", len(b.patches))
				}
				// The attempts to reach the pods take 15 seconds.
				if count, sum := spent(t, reader, "keyturn.change.patch.duration"); count != tt.patched || sum > 30 {
					t.Errorf("%d patches took %v s", count, sum)
				}
				if count, sum := spent(t, reader, "keyturn.change.ready.duration"); count > 0 {
					t.Errorf("%d times until pods were ready took %v s, although nobody has seen that they are", count, sum)
				}
			})
		})
	}
}
