package testkit

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Version returns the version, such as "v0.1.0", of the checkout with the given root. It is only written in the chart.
func Version(t testing.TB, root string) string {
	t.Helper()
	content := ReadFile(t, filepath.Join(root, "deploy", "chart", "Chart.yaml"))
	var chart struct{ Version string }
	if err := yaml.Unmarshal([]byte(content), &chart); err != nil || chart.Version == "" {
		t.Fatalf("deploy/chart/Chart.yaml: %v, version %q", err, chart.Version)
	}
	return "v" + chart.Version
}
