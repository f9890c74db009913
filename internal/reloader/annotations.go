// Package annotations has the keys of annotations of Stakater's Reloader that Keyturn reads, as far as they can be configured.
package reloader

// Annotations has the keys of Reloader's annotations. Reloader itself has a flag for each of them.
type Annotations struct {
	// Auto, AutoSecret and AutoConfigMap, on a workload, make it roll on everything that its pod spec references, or on everything of one kind.
	Auto, AutoSecret, AutoConfigMap string
	// Secret and ConfigMap, on a workload, list the names of sources.
	Secret, ConfigMap string
	// Search, on a workload, makes it roll on referenced sources that have Match.
	Search, Match string
	// Ignore, on a source, means that its changes roll nothing.
	Ignore string
	// PausePeriod and PausedAt, on a Deployment, are the period in which its changes are gathered, and when it began.
	PausePeriod, PausedAt string
}

// Default returns Reloader's default keys.
func Default() Annotations {
	return Annotations{
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
