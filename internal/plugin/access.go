package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
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
	// metadata reads objects without their content, such as the values of a Secret.
	metadata metadata.Interface
	// namespace is the namespace of the kubeconfig's context.
	namespace string
}

// addFlags adds kubectl's flags that select the cluster and the user, except --cluster, which is the name of a cluster of Keyturn here, and
// --namespace, which only some commands have.
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
	a.config.UserAgent = "keyturn/" + version
	a.config.Wrap(wrap)
	// The client needs no limit, because API priority and fairness limits it in the server.
	a.config.QPS = -1
	a.namespace, _, err = loader.Namespace()
	if err == nil {
		a.typed, err = kubernetes.NewForConfig(a.config)
	}
	if err == nil {
		a.dynamic, err = dynamic.NewForConfig(a.config)
	}
	if err == nil {
		a.metadata, err = metadata.NewForConfig(a.config)
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return nil
}

// mapper returns a new mapper of the names of kinds, which asks the API server for them once.
func (a *access) mapper() meta.RESTMapper {
	cached := memory.NewMemCacheClient(a.typed.Discovery())
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
}

// right is a permission that a request needs. The resource is named as in kubectl: secrets, deployments.apps, pods/portforward. The name of the
// object may be empty, and so may the namespace, which means all.
type right struct{ verb, resource, name, namespace string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.name != "" {
		text += "/" + r.name
	}
	if r.namespace == "" {
		return text + " in all namespaces"
	}
	return text + in(r.namespace)
}

// attributes returns the attributes for an access review.
func (r right) attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	of := schema.ParseGroupResource(resource)
	return &authorizationv1.ResourceAttributes{
		Verb: r.verb, Group: of.Group, Resource: of.Resource, Subresource: subresource, Name: r.name, Namespace: r.namespace,
	}
}

// explain returns the error of a request. If the API server refused it, the error names the missing permission, and whom to ask for it.
func (r right) explain(err error) error {
	if apierrors.IsForbidden(err) {
		return r.missing()
	}
	return fmt.Errorf("%s: %w", r, err)
}

func (r right) missing() error {
	return fmt.Errorf("no permission to %s: ask an administrator of the cluster to bind the Role of docs/reference/keyturn.md#rights to you", r)
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
