// Package annotations has the keys of those annotations of Stakater's Reloader that Keyturn reads and whose keys can be configured.
package annotations

// Reloader are the keys of Reloader's annotations. Reloader has a flag for each of them.
type Reloader struct {
	// Auto, AutoSecret and AutoConfigMap, on a workload, ask for all that its pod spec references, or for all of one kind.
	Auto, AutoSecret, AutoConfigMap string
	// Secret and ConfigMap, on a workload, list names.
	Secret, ConfigMap string
	// Search, on a workload, asks for the sources with Match.
	Search, Match string
	// Ignore, on a source, has its changes roll nothing.
	Ignore string
	// PausePeriod and PausedAt are on a Deployment.
	PausePeriod, PausedAt string
}

// Default returns the keys that Reloader has without flags.
func Default() Reloader {
	return Reloader{
		Auto:          "reloader.stakater.com/auto",
		AutoSecret:    "secret.reloader.stakater.com/auto",
		AutoConfigMap: "configmap.reloader.stakater.com/auto",
		Secret:        "secret.reloader.stakater.com/reload",
		ConfigMap:     "configmap.reloader.stakater.com/reload",
		Search:        "reloader.stakater.com/search",
		Match:         "reloader.stakater.com/match",
		Ignore:        "reloader.stakater.com/ignore",
		PausePeriod:   "deployment.reloader.stakater.com/pause-period",
		PausedAt:      "deployment.reloader.stakater.com/paused-at",
	}
}
