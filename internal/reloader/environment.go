package reloader

// Environment are the variables that Reloader reads and that mean something here. KUBECONFIG is read with --kubeconfig, and ALERT_* by the
// program. RELOADER_NAMESPACE is for the ConfigMap reloader-meta-info, which is not written, and METRICS_COUNT_BY_NAMESPACE turns on a metric
// that is always on.
type Environment struct {
	// Namespace is KUBERNETES_NAMESPACE: the only one to watch, unless --namespaces names others.
	Namespace string
	// PodName and PodNamespace are POD_NAME and POD_NAMESPACE, which the program needs for a Lease. It reads the first of them itself.
	PodName, PodNamespace string
	// Deployment is RELOADER_DEPLOYMENT_NAME, which Reloader's chart sets: replicas of another Deployment have another Lease.
	Deployment string
}

// NewEnvironment reads the variables by a function such as os.Getenv.
func NewEnvironment(get func(name string) string) Environment {
	return Environment{
		Namespace: get("KUBERNETES_NAMESPACE"), PodName: get("POD_NAME"), PodNamespace: get("POD_NAMESPACE"),
		Deployment: get("RELOADER_DEPLOYMENT_NAME"),
	}
}
