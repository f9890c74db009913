// Command cert-manager runs cert-manager's own controllers for the tests: those of certificates, of requests, and of the
// issuers CA, self-signed and Vault. ACME, the ingress and gateway shims, the webhook and leader election are left out.
//
// It exists because upstream's command is a module that no other module can require. It only wires the controllers, whose code is
// upstream's. A change of this file needs a new revision in tests/testbed/build/servers.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	// Controllers and issuers register themselves.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/vault"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
)

// workers is how many items each controller works on at once: upstream's default.
const workers = 5

func main() { os.Exit(run()) }

func run() int {
	kubeconfig := flag.String("kubeconfig", "", "file that says where the API server is and who we are")
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "where the Secrets of ClusterIssuers are")
	klog.InitFlags(nil)
	flag.Parse()
	defer klog.Flush()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A controller that is stopped while its caches fill returns an error, which is to be ignored.
	if err := runControllers(ctx, options(*kubeconfig, *namespace)); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		return 1
	}
	return 0
}

// options are upstream's defaults, as far as what runs here looks at them.
func options(kubeconfig, namespace string) controller.ContextOptions {
	return controller.ContextOptions{
		Kubeconfig: kubeconfig,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace:        namespace,
			ClusterIssuerAmbientCredentials: true,
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
}

// runControllers runs every registered controller until the context ends or one of them fails.
func runControllers(ctx context.Context, options controller.ContextOptions) error {
	group, ctx := errgroup.WithContext(ctx)
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	// A controller names the informers that it needs when it is made, so all are made before any informer starts.
	controllers := map[string]controller.Interface{}
	for name, construct := range controller.Known() {
		if controllers[name], err = construct(factory); err != nil {
			return fmt.Errorf("make the controller %s: %w", name, err)
		}
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("find the informers: %w", err)
	}
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.SharedInformerFactory.Start(ctx.Done())
	for name, c := range controllers {
		group.Go(func() error {
			if err := c.Run(workers, ctx); err != nil {
				return fmt.Errorf("run the controller %s: %w", name, err)
			}
			return nil
		})
	}
	shared.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done())
	shared.SharedInformerFactory.WaitForCacheSync(ctx.Done())
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cert-manager: the controllers are running")
	}
	return group.Wait()
}
