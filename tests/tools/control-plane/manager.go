package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
)

// resync is how often informers send all objects once more; upstream: between 12 and 24 hours.
const resync = 12 * time.Hour

// manager has what controllers share, like the ControllerContext of upstream.
type manager struct {
	options options
	// user makes clients for the user of the kubeconfig, and accounts clients for service accounts, which it creates.
	user, accounts clientbuilder.ControllerClientBuilder

	informers         informers.SharedInformerFactory
	metadata          metadata.Interface
	metadataInformers metadatainformer.SharedInformerFactory
	mapper            *restmapper.DeferredDiscoveryRESTMapper
	// started is closed when the informers that were asked for so far have been started.
	started chan struct{}
}

func newManager(opts options) (*manager, error) {
	config, err := clientConfig(opts.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = opts.qps, opts.burst
	m := &manager{options: opts, user: clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}, started: make(chan struct{})}
	client, err := m.user.Client("shared-informers")
	if err != nil {
		return nil, fmt.Errorf("make the client of the informers: %w", err)
	}
	m.accounts = clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), client.CoreV1(), metav1.NamespaceSystem)
	m.informers = informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(withoutManagers))
	metadataConfig, err := m.user.Config("metadata-informers")
	if err != nil {
		return nil, fmt.Errorf("configure the metadata client: %w", err)
	}
	if m.metadata, err = metadata.NewForConfig(metadataConfig); err != nil {
		return nil, fmt.Errorf("make the metadata client: %w", err)
	}
	m.metadataInformers = metadatainformer.NewSharedInformerFactoryWithOptions(m.metadata, resync, metadatainformer.WithTransform(withoutManagers))
	discovery, err := m.user.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	m.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	return m, nil
}

// await waits until the API server answers and has the namespace of the service accounts, which it creates soon after it is ready.
func (m *manager) await(ctx context.Context) error {
	const patience = 10 * time.Second
	client, err := m.client("")
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server: %w", errors.Join(err, last))
	}
	return nil
}

// client returns a client for the service account, or for the user of the kubeconfig if it is empty.
func (m *manager) client(account string) (kubernetes.Interface, error) {
	if account == "" {
		return m.user.Client("controllers")
	}
	client, err := m.accounts.Client(account)
	return silent{client}, err
}

// start starts the informers, and waits until those of built-in kinds have their first lists.
func (m *manager) start(ctx context.Context) {
	// A mapper keeps what discovery has told it, and tests add kinds.
	go wait.UntilWithContext(ctx, func(context.Context) { m.mapper.Reset() }, 30*time.Second)
	m.informers.Start(ctx.Done())
	m.metadataInformers.Start(ctx.Done())
	close(m.started)
	m.informers.WaitForCacheSync(ctx.Done())
}

// clientConfig reads a kubeconfig, for requests in the format that is the cheapest to decode.
func clientConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.DisableCompression = true
	return config, nil
}

// withoutManagers drops the managed fields of an object before it is cached: nobody here reads them, and they are large.
func withoutManagers(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
