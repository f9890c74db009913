package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	accountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// orphans deletes objects whose owners are gone, of all kinds.
func orphans(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	const (
		account = "generic-garbage-collector"
		workers = 20
		period  = 30 * time.Second // between two looks for new kinds
	)
	discovery, err := m.accounts.DiscoveryClient(account)
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	config, err := m.accounts.Config(account)
	if err != nil {
		return nil, fmt.Errorf("configure the metadata client: %w", err)
	}
	config.QPS *= 2 // Each deletion takes two requests.
	deleting, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the metadata client: %w", err)
	}
	all := informerfactory.NewInformerFactory(m.informers, m.metadataInformers)
	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, m.metadata, m.mapper, garbagecollector.DefaultIgnoredResources(), all, m.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, client, deleting, m.mapper, graph)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		go c.Sync(ctx, discovery, period)
		c.Run(ctx, workers, period)
	}, nil
}

// namespaces deletes everything in namespaces that are being deleted.
func namespaces(ctx context.Context, m *manager, _ kubernetes.Interface) (loop, error) {
	const workers = 10
	config, err := m.accounts.Config("namespace-controller")
	if err != nil {
		return nil, fmt.Errorf("configure the client: %w", err)
	}
	// As upstream: it asks for each kind, so the limits of the others would make it slow.
	config.QPS *= 20
	config.Burst *= 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	deleting, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the metadata client: %w", err)
	}
	c := namespace.NewNamespaceController(ctx, client, deleting, client.Discovery().ServerPreferredNamespacedResources,
		m.informers.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return worked(c, workers), nil
}

// serviceAccounts creates the account "default" of each namespace, without which the API server refuses pods.
func serviceAccounts(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	core := m.informers.Core().V1()
	c, err := accountcontroller.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		accountcontroller.DefaultServiceAccountsControllerOptions())
	return worked(c, 1), err
}

// tokens writes the tokens of service accounts into the Secrets that are there for them.
func tokens(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	const workers = 5
	rootCA, err := os.ReadFile(m.options.rootCA)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that pods trust: %w", err)
	}
	key, err := keyutil.PrivateKeyFromFile(m.options.accountsKey)
	if err != nil {
		return nil, fmt.Errorf("read the key that signs tokens: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("use the key that signs tokens: %w", err)
	}
	core := m.informers.Core().V1()
	c, err := accountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		accountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})
	return worked(c, workers), err
}

// rootCertificates writes the ConfigMap kube-root-ca.crt of each namespace.
func rootCertificates(_ context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	rootCA, err := os.ReadFile(m.options.rootCA)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that pods trust: %w", err)
	}
	core := m.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, rootCA)
	return worked(c, 1), err
}

// claims and volumes take off the finalizers that the API server sets on claims and volumes, as soon as they are not used. Nothing binds them:
// the node starts pods without their volumes.
func claims(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	core := m.informers.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), client)
	return worked(c, 1), err
}

func volumes(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	c := pvprotection.NewPVProtectionController(klog.FromContext(ctx), m.informers.Core().V1().PersistentVolumes(), client)
	return worked(c, 1), nil
}
