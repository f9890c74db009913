package main

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestRequestsAreCountedByVerbAndResource(t *testing.T) {
	const metrics = `# HELP apiserver_request_total Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 4
apiserver_request_total{code="200",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 20
apiserver_request_total{code="409",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="200",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",verb="PUT",version="v1"} 1e+06
apiserver_request_total{code="0",dry_run="",group="apps",resource="deployments",scope="cluster",subresource="",verb="WATCH",version="v1"} 7
apiserver_request_total{code="201",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 3
apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 9
`
	got, err := parseRequests(metrics)
	testkit.Must(t, err)
	want := map[string]float64{"PATCH deployments": 21, "PUT deployments/status": 1e6, "POST events": 3}
	testkit.WantEqual(t, "requests", want, got)
}
