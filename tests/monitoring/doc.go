// Package monitoring checks docs/metrics.md, the dashboard and alerts of deploy/monitoring, and docs/alerts.md against the
// metrics that the programs have.
package monitoring
