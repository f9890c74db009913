package reloader

// Environment are the variables that Reloader reads and that mean something here. KUBECONFIG is read with --kubeconfig. RELOADER_NAMESPACE and
// RELOADER_DEPLOYMENT_NAME are for the ConfigMap reloader-meta-info, which is not written, and METRICS_COUNT_BY_NAMESPACE turns on a metric
// that is always on.
type Environment struct {
	// Namespace is KUBERNETES_NAMESPACE: the only one to watch, unless --namespaces names others.
	Namespace string
	// Alert is ALERT_ON_RELOAD.
	Alert string
}

// NewEnvironment reads the variables by a function such as os.Getenv.
func NewEnvironment(get func(name string) string) Environment {
	return Environment{Namespace: get("KUBERNETES_NAMESPACE"), Alert: get("ALERT_ON_RELOAD")}
}
