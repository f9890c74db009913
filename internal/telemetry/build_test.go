package telemetry

import (
	"runtime"
	"slices"
	"testing"
)

func TestTheBuildIsAMetric(t *testing.T) {
	clearEnvironment(t)
	// There is no commit, because the go command does not stamp test binaries.
	want := `keyturn_build_info{goversion="` + runtime.Version() + `",revision="",version="1.2.3"} 1`
	if samples := scrape(t, setup(t, scraped())); !slices.Contains(samples, want) {
		t.Errorf("no sample %s in %q", want, samples)
	}
}
