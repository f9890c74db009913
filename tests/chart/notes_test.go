package chart

import (
	"strings"
	"testing"
)

func TestTheNotesSayWhatToKnowOfAnInstallation(t *testing.T) {
	const (
		peers  = "Name your NATS in networkPolicy.to, too"
		to     = "networkPolicy: {to: [{ipBlock: {cidr: 10.0.0.1/32}}]}"
		nats   = "nats: {url: 'nats://a:4222'}"
		noJobs = "No Job is created in the namespace keyturn-system, because Keyturn runs there"
		always = "serves"
	)
	for _, tt := range []struct{ name, values, want, wantNo string }{
		{"the job makes the keys", "{}", "The job keyturn-keys creates missing keys", "keyturn-nats-storage"},
		{"keys of your own", "{keys: {create: false}, nats: {certificate: existing}}", "keyturn-nats-storage among them", "The job"},
		{"and a NATS of your own", "{keys: {create: false}, " + nats + "}", "when you have created their keys:", "keyturn-nats-storage"},

		{"the peers limit where NATS is", "{" + nats + ", " + to + "}", peers, ""},
		{"no peers", "{" + nats + ", networkPolicy: {to: []}}", always, peers},
		{"no NATS of your own", to, always, peers},
		{"no policies", "{" + nats + ", networkPolicy: {enabled: false, to: [{ipBlock: {cidr: 10.0.0.1/32}}]}}", always, peers},

		// The admission policy refuses Jobs beside Keyturn, which an installation in the namespace that Reloader served would create.
		{"Reloader in its own namespace", "reloader: {watchGlobally: false}", noJobs, ""},
		{"the namespace of the release among others", "{namespaces: [team-a, keyturn-system], jobs: {enabled: true}}", noJobs, ""},
		{"without Jobs", "{reloader: {watchGlobally: false}, jobs: {enabled: false}}", always, noJobs},
		{"with CronJobs and Jobs ignored", "reloader: {watchGlobally: false, ignoreCronJobs: true, ignoreJobs: true}", always, noJobs},
		{"without the policy", "{reloader: {watchGlobally: false}, admissionPolicy: {enabled: false}}", always, noJobs},
		{"other namespaces", "{namespaces: [team-a], jobs: {enabled: true}}", always, noJobs},
		{"all namespaces, among which that of the release is protected", "reloaderMode: true", always, noJobs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := helm(t, tt.values, "install", "keyturn", folder, "--dry-run=client", "--namespace", systemNamespace)
			_, said, _ := strings.Cut(out, "\nNOTES:\n")
			if err != nil || !strings.Contains(said, tt.want) || tt.wantNo != "" && strings.Contains(said, tt.wantNo) {
				t.Errorf("want %q and not %q, got %v and\n%s", tt.want, tt.wantNo, err, out)
			}
		})
	}
}
