package monitoring

import (
	"bytes"
	"testing"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/internal/project"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/tests/testkit"
)

// section is one table of the reference.
type section struct {
	title, text string
	table       []telemetry.Instrument
}

// sections are all that is measured.
func sections() []section {
	return []section{
		{"The watcher", "Published events and tracked sources.", sources.Instruments()},
		{"Secret stores", "Exported by a watcher with secret stores.", openbao.Instruments()},
		{"The actuator", "Decisions and rollouts. The `reason` of a decision is listed in " +
			"[architecture](../explanation/architecture.md#what-a-change-means-to-a-workload), that of a rollout in [events](events.md#data-of-an-outcome).", actuate.Instruments()},
		{"The streams", "Exported by all programs.", bus.Instruments()},
		{"The embedded NATS", "Exported by `keyturn nats`, and by an actuator with `--nats-store-dir`.", embedded.Instruments()},
		{"Notifications", "Exported by an actuator with sinks.", notify.Instruments()},
		{"The projector", "The `reason` is listed in [projection](../how-to/project-values.md#what-is-reported).", project.Instruments()},
		{"All programs", "In addition to the metrics of the Go runtime and the process.", program.Instruments()},
		{
			"Reloader's names", "Exported by an actuator with `--reloader metrics`, for existing dashboards and alerts of Reloader. " +
				"`deploy/monitoring` [records others](reloader.md#metrics). To keep the label `namespace`, Prometheus needs `honorLabels: true`, which the " +
				"chart sets in Reloader's mode.",
			actuate.ReloaderInstruments(),
		},
	}
}

const introduction = `# Metrics

This page is made from the code by ` + "`make generate`" + `.

Prometheus scrapes them from ` + "`/metrics`" + ` at ` + "`--metrics-addr`" + `; ` + "`OTEL_METRICS_EXPORTER`" + ` can push them as well. Histograms have the
suffixes ` + "`_bucket`, `_sum` and `_count`" + `. Those of the actuator carry [exemplars](../how-to/tracing.md#exemplars) with the trace ID.
No label names an object. ` + "`deploy/monitoring`" + ` has a dashboard and [alerts](../operate/alerts.md).
`

func TestReferenceOfTheMetricsIsWhatTheCodeSays(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(introduction)
	for _, s := range sections() {
		writeReference(t, &doc, s.title, s.text, s.table)
	}
	testkit.Golden(t, "../../docs/reference/metrics.md", doc.Bytes())
}

func TestEveryMetricIsDefinedOnceInAProgram(t *testing.T) {
	for _, program := range []struct {
		name   string
		tables [][]telemetry.Instrument
	}{
		{"watcher", [][]telemetry.Instrument{sources.Instruments(), openbao.Instruments(), bus.Instruments(), program.Instruments()}},
		{"actuator", [][]telemetry.Instrument{
			actuate.Instruments(), bus.Instruments(), embedded.Instruments(), notify.Instruments(), program.Instruments(), actuate.ReloaderInstruments(),
		}},
		{"nats", [][]telemetry.Instrument{embedded.Instruments(), program.Instruments()}},
		{"projector", [][]telemetry.Instrument{project.Instruments(), bus.Instruments(), program.Instruments()}},
	} {
		seen := map[string]bool{}
		for _, table := range program.tables {
			for i := range table {
				name := prometheusName(t, &table[i])
				if seen[name] {
					t.Errorf("the %s has %s twice", program.name, name)
				}
				seen[name] = true
			}
		}
	}
}
