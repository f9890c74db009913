package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/reloader"
)

// flagValues contains the values of the flags: first those of Reloader, under the same names, and then our own.
type flagValues struct {
	AutoReloadAll                                     bool
	ResourcesToIgnore, IgnoredWorkloadTypes           []string
	Namespaces, NamespacesToIgnore, NamespaceSelector []string
	ResourceLabelSelector                             []string
	LogFormat, LogLevel                               string
	WebhookURL                                        string
	IsArgoRollouts, ReloadOnCreate, ReloadOnDelete    string
	ReloadStrategy                                    string
	EnableHA, SyncAfterRestart                        bool
	EnablePprof                                       bool
	PprofAddr                                         string
	EnableCSIIntegration                              bool
	// Annotations are the keys of annotations.
	Annotations reloader.Annotations
	// Arguments are the arguments that are not flags.
	Arguments []string

	// Cluster is the name of the cluster in events and telemetry.
	Cluster string
	// Kubeconfig is a file. If it is empty, $KUBECONFIG or ~/.kube/config is used, or the pod's service account if there is neither.
	Kubeconfig string
	// StateDir is the directory of the streams and the fingerprint key. Empty means a temporary one.
	StateDir string
	// FingerprintKeyFile is a file to use instead of a key in StateDir. Empty means none.
	FingerprintKeyFile string
	// MetricsAddr is the host:port of metrics and probes.
	MetricsAddr string
	// NotifyConfig is the file of chat channels and webhooks. Empty means none.
	NotifyConfig string
	// Settle is the debounce, which Reloader does not have. Zero rolls at once.
	Settle time.Duration
	// MaxRollsPerHour is the maximum number of rolls of a workload within an hour. Zero means no limit, as in Reloader.
	MaxRollsPerHour int
}

// annotationFlags describes the annotations whose keys the flags change.
var annotationFlags = map[string]string{
	"auto-annotation":                  "that makes a workload roll on everything it references",
	"configmap-annotation":             "that names ConfigMaps on which a workload rolls",
	"secret-annotation":                "that names Secrets on which a workload rolls",
	"configmap-auto-annotation":        "that makes a workload roll on every ConfigMap it references",
	"secret-auto-annotation":           "that makes a workload roll on every Secret it references",
	"auto-search-annotation":           "that makes a workload roll on marked sources that it references",
	"search-match-annotation":          "that marks a source for --auto-search-annotation",
	"ignore-annotation":                "that makes a source roll nothing",
	"pause-deployment-annotation":      "with the period that collects changes of a Deployment",
	"pause-deployment-time-annotation": "with the beginning of that period",
}

func defaultFlags() *flagValues {
	return &flagValues{
		LogLevel: "info", IsArgoRollouts: "false", ReloadOnCreate: "false", ReloadOnDelete: "false",
		ReloadStrategy: reloader.StrategyVariables, PprofAddr: ":6060", Annotations: reloader.Default(),
		Cluster: "default", MetricsAddr: ":9090",
		Settle: time.Second, MaxRollsPerHour: 30,
	}
}

func (f *flagValues) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Namespaces, "namespaces", nil,
		"`namespaces` to watch and to roll in, separated by commas; empty means that of KUBERNETES_NAMESPACE, or else all")
	flags.StringSliceVar(&f.NamespacesToIgnore, "namespaces-to-ignore", nil, "`namespaces` to leave alone, separated by commas")
	flags.StringSliceVar(&f.NamespaceSelector, "namespace-selector", nil,
		"label `selector` of namespaces, if all are watched; also key:value, and key:* for any value")
	flags.StringSliceVar(&f.ResourceLabelSelector, "resource-label-selector", nil,
		"label `selector` of Secrets and ConfigMaps; also key:value, and key:* for any value")
	flags.StringSliceVar(&f.ResourcesToIgnore, "resources-to-ignore", nil, "`kind` of source to leave alone: configmaps or secrets")
	flags.StringSliceVar(&f.IgnoredWorkloadTypes, "ignored-workload-types", nil, "`kinds` of workload to leave alone: jobs, cronjobs")
	flags.BoolVar(&f.AutoReloadAll, "auto-reload-all", f.AutoReloadAll,
		"also roll workloads without an annotation, for everything that they reference")
	flags.StringVar(&f.ReloadStrategy, "reload-strategy", f.ReloadStrategy, "what a roll writes: env-vars or annotations")
	flags.StringVar(&f.ReloadOnCreate, "reload-on-create", f.ReloadOnCreate, "roll when a source is created: true or false")
	flags.StringVar(&f.ReloadOnDelete, "reload-on-delete", f.ReloadOnDelete, "roll when a source is deleted: true or false")
	flags.BoolVar(&f.SyncAfterRestart, "sync-after-restart", f.SyncAfterRestart,
		"accepted without effect: changes made while this program was down are always found, if its state is kept")
	flags.StringVar(&f.IsArgoRollouts, "is-Argo-Rollouts", f.IsArgoRollouts, "roll Rollouts of Argo Rollouts: true or false")
	flags.BoolVar(&f.EnableCSIIntegration, "enable-csi-integration", f.EnableCSIIntegration, "watch content mounted by the Secrets Store CSI driver")
	flags.StringVar(&f.WebhookURL, "webhook-url", f.WebhookURL, "`URL` to call instead of rolling")
	flags.BoolVar(&f.EnableHA, "enable-ha", f.EnableHA,
		"be one of several replicas: only the one that holds a Lease in the namespace of POD_NAMESPACE rolls")
	for name, key := range f.Annotations.Named() {
		flags.StringVar(key, name, *key, "`key` of the annotation "+annotationFlags[name])
	}
	flags.StringVar(&f.LogFormat, "log-format", f.LogFormat, "log `format`: json, or empty for text")
	flags.StringVar(&f.LogLevel, "log-level", f.LogLevel, "least severe `level` to log: trace, debug, info, warning, error, fatal or panic")
	flags.BoolVar(&f.EnablePprof, "enable-pprof", f.EnablePprof, "serve profiles at --pprof-addr")
	flags.StringVar(&f.PprofAddr, "pprof-addr", f.PprofAddr, "`address` that serves profiles with --enable-pprof")
	flags.StringVar(&f.Cluster, "cluster", f.Cluster, "`name` of the cluster in events and telemetry, a DNS label")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", f.Kubeconfig,
		"kubeconfig `file`; empty uses $KUBECONFIG or ~/.kube/config, or else the pod's service account")
	flags.StringVar(&f.StateDir, "state-dir", f.StateDir,
		"`directory` for the streams and the fingerprint key; empty uses a temporary one, below $TMPDIR or /tmp, or else /dev/shm. "+
			"If its content is lost, changes made while this program was down are not found")
	flags.StringVar(&f.FingerprintKeyFile, "fingerprint-key-file", f.FingerprintKeyFile,
		"`file` with the fingerprint keys; empty creates a key in --state-dir")
	flags.StringVar(&f.MetricsAddr, "metrics-addr", f.MetricsAddr, "`address` that serves /metrics, /live, /livez and /readyz")
	flags.StringVar(&f.NotifyConfig, "notify-config", f.NotifyConfig,
		"`file` with the chat channels and webhooks that receive outcomes; empty disables notifications")
	flags.DurationVar(&f.Settle, "settle", f.Settle,
		"debounce: roll a workload after this long without a further change; 0 rolls at once, as Reloader does")
	flags.IntVar(&f.MaxRollsPerHour, "max-rolls-per-hour", f.MaxRollsPerHour,
		"maximum `number` of rolls per hour of one workload, unless it has keyturn.dev/max-rolls-per-hour; 0 means no limit, as in Reloader")
}

// environment contains the variables of Reloader that have a meaning here. KUBECONFIG is read with --kubeconfig, and ALERT_* by the program. Two
// variables are not needed: RELOADER_NAMESPACE is for the ConfigMap reloader-meta-info, which is not written, and METRICS_COUNT_BY_NAMESPACE enables
// a metric that is always on here.
type environment struct {
	// Namespace is KUBERNETES_NAMESPACE: the only one to watch, unless --namespaces names others.
	Namespace string
	// PodName and PodNamespace are POD_NAME and POD_NAMESPACE, which are needed for a Lease. The program itself also reads POD_NAME.
	PodName, PodNamespace string
	// Deployment is RELOADER_DEPLOYMENT_NAME, which Reloader's chart sets. Each Deployment has its own Lease.
	Deployment string
}

// readEnvironment reads the variables with a function such as os.Getenv.
func readEnvironment(get func(name string) string) environment {
	return environment{
		Namespace: get("KUBERNETES_NAMESPACE"), PodName: get("POD_NAME"), PodNamespace: get("POD_NAMESPACE"),
		Deployment: get("RELOADER_DEPLOYMENT_NAME"),
	}
}
