package kube

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options select the API server and configure the clients.
type Options struct {
	// Kubeconfig is a file. If it is empty, $KUBECONFIG or ~/.kube/config is used, or the pod's service account if there is neither.
	Kubeconfig string
	UserAgent  string        // names the program in the API server's audit log, such as keyturn-watcher/1.2.3; empty means client-go's default
	Timeout    time.Duration // bounds each request; zero means no limit, as watches need
	// NoWarnings drops warnings of the API server, which client-go would log. Admission warnings may quote the content of a request.
	NoWarnings bool
}

// AddFlags adds the flag for the kubeconfig.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig `file`; empty uses $KUBECONFIG or ~/.kube/config, or else the pod's service account")
}

// Client returns a client for the built-in kinds. It uses protobuf, which halves the cost of a list.
func (o *Options) Client() (kubernetes.Interface, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return client, nil
}

// Dynamic returns a client for custom resources, which the API server serves only as JSON.
func (o *Options) Dynamic() (dynamic.Interface, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return client, nil
}

func (o *Options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.UserAgent, config.Timeout = o.UserAgent, o.Timeout
	// The client needs no limit, because API priority and fairness limits it in the server.
	config.QPS = -1
	if o.NoWarnings {
		config.WarningHandler = rest.NoWarnings{}
	}
	return config, nil
}
