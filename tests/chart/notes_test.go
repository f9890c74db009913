package chart

import (
	"strings"
	"testing"
)

// notes returns what helm install says of a release in the namespace of the tests.
func notes(t *testing.T, values string) string {
	t.Helper()
	out, err := helm(t, values, "install", "keyturn", folder, "--dry-run=client", "--namespace", systemNamespace)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, said, _ := strings.Cut(out, "\nNOTES:\n")
	return said
}

// The admission policy refuses Jobs beside Keyturn, which an installation in the namespace that Reloader served would create.
func TestTheNotesSayWhereNoJobIsCreated(t *testing.T) {
	tests := []struct {
		name, values string
		want         bool
	}{
		{"Reloader in its own namespace", "reloader: {watchGlobally: false}", true},
		{"the namespace of the release among others", "{namespaces: [team-a, keyturn-system], jobs: {enabled: true}}", true},
		{"without Jobs", "{reloader: {watchGlobally: false}, jobs: {enabled: false}}", false},
		{"with CronJobs and Jobs ignored", "reloader: {watchGlobally: false, ignoreCronJobs: true, ignoreJobs: true}", false},
		{"without the policy", "{reloader: {watchGlobally: false}, admissionPolicy: {enabled: false}}", false},
		{"other namespaces", "{namespaces: [team-a], jobs: {enabled: true}}", false},
		{"all namespaces, among which that of the release is protected", "reloaderMode: true", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			said := notes(t, tt.values)
			const line = "No Job is created in the namespace keyturn-system, because Keyturn runs there"
			if !strings.Contains(said, "serves") || strings.Contains(said, line) != tt.want {
				t.Errorf("want the line %q: %t, got\n%s", line, tt.want, said)
			}
		})
	}
}
