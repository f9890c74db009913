package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Version returns the version, such as "v0.1.0", of the checkout with the given root. It is only written in the chart.
func Version(t testing.TB, root string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(content, &chart); err != nil || chart.Version == "" {
		t.Fatalf("deploy/chart/Chart.yaml: %v, version %q", err, chart.Version)
	}
	return "v" + chart.Version
}
