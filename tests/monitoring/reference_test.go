package monitoring

import (
	"bytes"
	"testing"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/internal/telemetry/instrument"
	"github.com/keyturn/keyturn/tests/testkit"
)

// section is one table of the reference.
type section struct {
	title, text string
	table       []instrument.Instrument
}

// sections are all that is measured.
func sections() []section {
	return []section{
		{"The watcher", "What is published, and what is known.", sources.Instruments()},
		{"Secret stores", "Of the watcher, where it watches secret stores.", openbao.Instruments()},
		{"The actuator", "What is decided and done. `reason` is one of [architecture](architecture.md#what-a-change-means-to-a-workload); " +
			"that of a rollout is one of [events](events.md#data-of-an-outcome).", actuate.Instruments()},
		{"Notifications", "Of the actuator, where it has sinks.", notify.Instruments()},
		{"Both programs", "Those of the Go runtime and of the process are served besides.", telemetry.Instruments()},
		{"Reloader's names", "Of the actuator with `--reloader-metrics`, for dashboards and alerts that were made for Reloader. " +
			"Its `rest_client_*` is `keyturn.kubernetes.*` here.", actuate.ReloaderInstruments()},
	}
}

const introduction = `# Metrics

This page is made from the code by ` + "`make generate`" + `.

Prometheus reads them from ` + "`/metrics`" + ` at ` + "`--metrics-addr`" + `; they are pushed as well where ` + "`OTEL_METRICS_EXPORTER`" + ` says so. A
histogram has ` + "`_bucket`, `_sum` and `_count`" + ` behind its name. The histograms of the actuator carry exemplars with the id of the
trace, which Prometheus keeps with ` + "`--enable-feature=exemplar-storage`" + `. No label names an object. ` + "`deploy/monitoring`" + ` has a dashboard
and alerts, which [alerts](alerts.md) explains.
`

func TestReferenceOfTheMetricsIsWhatTheCodeSays(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(introduction)
	for _, s := range sections() {
		if err := instrument.Reference(&doc, s.title, s.text, s.table); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Golden(t, "../../docs/metrics.md", doc.Bytes())
}

func TestEveryMetricIsDefinedOnceInAProgram(t *testing.T) {
	for _, program := range []struct {
		name   string
		tables [][]instrument.Instrument
	}{
		{"watcher", [][]instrument.Instrument{sources.Instruments(), openbao.Instruments(), telemetry.Instruments()}},
		{"actuator", [][]instrument.Instrument{
			actuate.Instruments(), notify.Instruments(), telemetry.Instruments(), actuate.ReloaderInstruments(),
		}},
	} {
		seen := map[string]bool{}
		for _, table := range program.tables {
			for i := range table {
				name, err := table[i].Prometheus()
				if err != nil {
					t.Fatal(err)
				}
				if seen[name] {
					t.Errorf("the %s has %s twice", program.name, name)
				}
				seen[name] = true
			}
		}
	}
}
