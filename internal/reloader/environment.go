package reloader

// Environment has the variables of Reloader that have a meaning here. KUBECONFIG is read with --kubeconfig, and ALERT_* by the program. Two
// variables are not needed: RELOADER_NAMESPACE is for the ConfigMap reloader-meta-info, which is not written, and METRICS_COUNT_BY_NAMESPACE
// enables a metric that is always on here.
type Environment struct {
	// Namespace is KUBERNETES_NAMESPACE: the only one to watch, unless --namespaces names others.
	Namespace string
	// PodName and PodNamespace are POD_NAME and POD_NAMESPACE, which are needed for a Lease. The program itself also reads POD_NAME.
	PodName, PodNamespace string
	// Deployment is RELOADER_DEPLOYMENT_NAME, which Reloader's chart sets. Each Deployment has its own Lease.
	Deployment string
}

// NewEnvironment reads the variables with a function such as os.Getenv.
func NewEnvironment(get func(name string) string) Environment {
	return Environment{
		Namespace: get("KUBERNETES_NAMESPACE"), PodName: get("POD_NAME"), PodNamespace: get("POD_NAMESPACE"),
		Deployment: get("RELOADER_DEPLOYMENT_NAME"),
	}
}
