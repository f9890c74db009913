// Package monitoring checks docs/reference/metrics.md, the dashboard and alerts of deploy/monitoring, and docs/operate/alerts.md against the
// metrics that the programs have.
package monitoring
