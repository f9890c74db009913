package plugin

import (
	"fmt"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// access is the user's access to a cluster, with kubectl's flags and kubeconfig.
type access struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides

	// The following fields are set by open.

	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	// namespace is the namespace of the kubeconfig's context.
	namespace string
}

// addFlags adds the flags of kubectl that select the cluster and the user, except --cluster, which is the name of a cluster of Keyturn here,
// and --namespace, which only some commands have.
func (a *access) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty uses $KUBECONFIG or ~/.kube/config")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	clientcmd.BindOverrideFlags(&a.overrides, flags, clientcmd.ConfigOverrideFlags{
		CurrentContext: names.CurrentContext, Timeout: names.Timeout,
		ContextOverrideFlags: clientcmd.ContextOverrideFlags{AuthInfoName: names.ContextOverrideFlags.AuthInfoName},
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Token:       names.AuthOverrideFlags.Token,
			Impersonate: names.AuthOverrideFlags.Impersonate, ImpersonateGroups: names.AuthOverrideFlags.ImpersonateGroups,
		},
		ClusterOverrideFlags: clientcmd.ClusterOverrideFlags{
			APIServer:             names.ClusterOverrideFlags.APIServer,
			CertificateAuthority:  names.ClusterOverrideFlags.CertificateAuthority,
			InsecureSkipTLSVerify: names.ClusterOverrideFlags.InsecureSkipTLSVerify,
			TLSServerName:         names.ClusterOverrideFlags.TLSServerName,
		},
	})
}

// open reads the kubeconfig. Version is the version of the plugin. If wrap is not nil, it wraps the transport of all requests.
func (a *access) open(version string, wrap transport.WrapperFunc) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &a.overrides)
	var err error
	if a.config, err = loader.ClientConfig(); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	a.config.UserAgent = "kubectl-keyturn/" + version
	a.config.Wrap(wrap)
	// No limit in the client: API priority and fairness limits it in the server.
	a.config.QPS = -1
	if a.namespace, _, err = loader.Namespace(); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if a.typed, err = kubernetes.NewForConfig(a.config); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if a.dynamic, err = dynamic.NewForConfig(a.config); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return nil
}

func (a *access) mapper() (meta.RESTMapper, error) {
	found, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cached := memory.NewMemCacheClient(found)
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil), nil
}

// right is a permission that a request of the user needs.
type right struct{ verb, resource, namespace string }

func (r right) String() string {
	if r.namespace == "" {
		return r.verb + " " + r.resource + " in all namespaces"
	}
	return r.verb + " " + r.resource + " in namespace " + r.namespace
}

// explain returns the error of a request. If the API server refused it, the error says which permission is missing, and whom to ask for what.
func (r right) explain(err error) error {
	if apierrors.IsForbidden(err) {
		return r.missing()
	}
	return fmt.Errorf("%s: %w", r, err)
}

func (r right) missing() error {
	return fmt.Errorf("no permission to %s: ask an administrator of the cluster to bind the Role of docs/kubectl-keyturn.md#rights to you", r)
}
