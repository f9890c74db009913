package reloader

import "github.com/keyturn/keyturn/internal/notify"

// Environment are the variables that Reloader reads and that mean something here. KUBECONFIG is read with --kubeconfig. RELOADER_NAMESPACE and
// RELOADER_DEPLOYMENT_NAME are for the ConfigMap reloader-meta-info, which is not written, and METRICS_COUNT_BY_NAMESPACE turns on a metric
// that is always on.
type Environment struct {
	// Namespace is KUBERNETES_NAMESPACE: the only one to watch, unless --namespaces names others.
	Namespace string
	// Alert is what is wrong with ALERT_ON_RELOAD and the other variables of alerts, which the program reads itself. Nil: nothing.
	Alert error
}

// NewEnvironment reads the variables by a function such as os.Getenv.
func NewEnvironment(get func(name string) string) Environment {
	_, err := notify.AlertFrom(get)
	return Environment{Namespace: get("KUBERNETES_NAMESPACE"), Alert: err}
}
