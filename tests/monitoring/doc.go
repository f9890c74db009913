// Package monitoring holds what people watch Keyturn with to what it measures: docs/metrics.md, the dashboard and the
// alerts of deploy/monitoring, and what docs/alerts.md says of them.
package monitoring
