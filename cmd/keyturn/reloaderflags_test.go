package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestTheFlagsAreThoseOfReloader(t *testing.T) {
	// The flags of Reloader 1.4, with their defaults.
	want := map[string]string{
		"auto-reload-all": "false", "auto-annotation": "reloader.stakater.com/auto",
		"configmap-annotation": "configmap.reloader.stakater.com/reload", "secret-annotation": "secret.reloader.stakater.com/reload",
		"configmap-auto-annotation": "configmap.reloader.stakater.com/auto", "secret-auto-annotation": "secret.reloader.stakater.com/auto",
		"auto-search-annotation": "reloader.stakater.com/search", "search-match-annotation": "reloader.stakater.com/match",
		"ignore-annotation":                "reloader.stakater.com/ignore",
		"pause-deployment-annotation":      "deployment.reloader.stakater.com/pause-period",
		"pause-deployment-time-annotation": "deployment.reloader.stakater.com/paused-at",
		"log-format":                       "", "log-level": "info", "webhook-url": "", "resources-to-ignore": "[]", "ignored-workload-types": "[]",
		"namespaces": "[]", "namespaces-to-ignore": "[]", "namespace-selector": "[]", "resource-label-selector": "[]",
		"is-Argo-Rollouts": "false", "reload-strategy": "env-vars", "reload-on-create": "false", "reload-on-delete": "false",
		"enable-ha": "false", "sync-after-restart": "false", "enable-pprof": "false", "pprof-addr": ":6060", "enable-csi-integration": "false",
	}
	flags := pflag.NewFlagSet("reloader", pflag.ContinueOnError)
	defaultFlags().addTo(flags)
	got := map[string]string{}
	own := map[string]bool{
		"cluster": true, "kubeconfig": true, "state-dir": true, "fingerprint-key-file": true, "metrics-addr": true, "notify-config": true,
		"settle": true, "max-rolls-per-hour": true,
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !own[flag.Name] {
			got[flag.Name] = flag.DefValue
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-Reloader +ours):\n%s", diff)
	}
}
