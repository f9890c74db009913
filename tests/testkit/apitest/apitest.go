// Package apitest runs the API server of an empty cluster in the process of a test. That is enough for a program to start, become ready
// and end.
package apitest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// uid is the UID of the namespace kube-system, the cluster's only object.
const uid = "0e2b1a4c-empty"

// kinds are the kinds that the cluster has, by the paths of their collections.
var kinds = map[string]struct{ version, kind string }{
	"/api/v1/secrets":            {"v1", "Secret"},
	"/api/v1/configmaps":         {"v1", "ConfigMap"},
	"/api/v1/namespaces":         {"v1", "Namespace"},
	"/apis/apps/v1/deployments":  {"apps/v1", "Deployment"},
	"/apis/apps/v1/statefulsets": {"apps/v1", "StatefulSet"},
	"/apis/apps/v1/daemonsets":   {"apps/v1", "DaemonSet"},
	"/apis/batch/v1/cronjobs":    {"batch/v1", "CronJob"},
	"/apis/batch/v1/jobs":        {"batch/v1", "Job"},
}

// Start starts a server that ends with the test, and returns the path of a kubeconfig for it.
func Start(t testing.TB) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: empty\nusers: [{name: empty}]\n" +
		"clusters: [{name: empty, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: empty, context: {cluster: empty, user: empty}}]\n"
	testkit.WriteFile(t, kubeconfig, content)
	return kubeconfig
}

// serve responds to lists with no objects, holds watches open until the client goes, and responds to everything else with
// 404.
func serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/api/v1/namespaces/kube-system" {
		write(w, object("v1", "Namespace", map[string]any{"name": path.Base(r.URL.Path), "uid": uid}))
		return
	}
	kind, ok := kinds[r.URL.Path]
	switch {
	case !ok || r.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		write(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound})
	case r.URL.Query().Get("watch") == "":
		list := object(kind.version, kind.kind+"List", map[string]any{"resourceVersion": "1"})
		list["items"] = []any{}
		write(w, list)
	default:
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			meta := map[string]any{"resourceVersion": "1", "annotations": map[string]any{"k8s.io/initial-events-end": "true"}}
			write(w, map[string]any{"type": "BOOKMARK", "object": object(kind.version, kind.kind, meta)})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func object(version, kind string, metadata map[string]any) map[string]any {
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata}
}

// write writes an object as a line of JSON. An error means that the client is gone.
func write(w http.ResponseWriter, object any) { _ = json.NewEncoder(w).Encode(object) }
