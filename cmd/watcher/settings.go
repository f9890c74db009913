package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// settings are what the flags set.
type settings struct {
	kubeconfig string
	connect    events.ConnectOptions
	telemetry  telemetry.Options
	watcher    sources.Options
	identity   identity.Options
}

func newSettings() *settings {
	return &settings{telemetry: telemetry.DefaultOptions(), watcher: sources.DefaultOptions()}
}

func (s *settings) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.watcher.Cluster, "cluster", "", "`name` of the cluster in subjects and events, a DNS label")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty is the pod's service account, else $KUBECONFIG or ~/.kube/config")
	flags.StringSliceVar(&s.watcher.Namespaces, "namespaces", nil, "`namespaces` to watch, separated by commas; empty is all of them")
	s.connect.AddFlags(flags)
	s.telemetry.AddFlags(flags)
	s.watcher.AddFlags(flags)
	s.identity.AddFlags(flags)
}

// connectKubernetes sets the clients of the API server. A watcher of secret stores alone needs none.
func (s *settings) connectKubernetes() error {
	if s.watcher.StoresAlone() {
		return nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	// The API server's own priority and fairness bounds what a client may ask.
	config.QPS, config.UserAgent = -1, "keyturn-watcher/"+version
	if s.watcher.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	// Protobuf halves what a list costs. Custom resources have none.
	config.ContentType = runtime.ContentTypeProtobuf
	if s.watcher.Client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return nil
}
