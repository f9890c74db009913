// Package stackdriver stands in for metrics that are sent to Google Cloud.
package stackdriver

import "github.com/armon/go-metrics"

// Config would configure the sink.
type Config struct {
	LabelExtractor, Bucketer       any
	ProjectID, Location, Namespace string
	DebugLogs                      bool
}

// NewSink returns a sink that drops all metrics.
func NewSink(client any, config *Config) metrics.MetricSink { return &metrics.BlackholeSink{} }
