package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// options are the flags of upstream's kube-controller-manager that the controllers below know.
type options struct {
	kubeconfig, address, certificate, key, accountsKey, rootCA string

	qps   float32 // of each controller
	burst int

	deployments, replicaSets, statefulSets, daemonSets int // that are worked on at a time
}

func parseOptions(args []string) (options, error) {
	var o options
	var host, port string
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	// The test bed passes what upstream's binary needs, which the oldest version runs. The rest has only one value here, or no meaning.
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the file with the address of the API server and a token")
	flags.StringVar(&host, "bind-address", "127.0.0.1", "the address of /healthz")
	flags.StringVar(&port, "secure-port", "10257", "the port of /healthz")
	flags.StringVar(&o.certificate, "tls-cert-file", "", "the certificate of /healthz")
	flags.StringVar(&o.key, "tls-private-key-file", "", "the key of that certificate")
	flags.StringVar(&o.accountsKey, "service-account-private-key-file", "", "the key that signs tokens in Secrets")
	flags.StringVar(&o.rootCA, "root-ca-file", "", "the certificate that pods trust")
	flags.Float32Var(&o.qps, "kube-api-qps", 20, "requests per second of each controller")
	flags.IntVar(&o.burst, "kube-api-burst", 30, "burst of requests of each controller")
	flags.IntVar(&o.deployments, "concurrent-deployment-syncs", 5, "Deployments at a time")
	flags.IntVar(&o.replicaSets, "concurrent-replicaset-syncs", 5, "ReplicaSets at a time")
	flags.IntVar(&o.statefulSets, "concurrent-statefulset-syncs", 5, "StatefulSets at a time")
	flags.IntVar(&o.daemonSets, "concurrent-daemonset-syncs", 2, "DaemonSets at a time")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.address = net.JoinHostPort(host, port)
	return o, nil
}

// loop is a controller that was built. It runs until the context ends.
type loop func(ctx context.Context)

// controller is one of upstream's controllers.
type controller struct {
	// account is the service account of kube-system that it uses, for which the API server has a role. Empty means the user of the
	// kubeconfig.
	account string
	build   func(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error)
}

// controllers returns the controllers that tests rely on. A new one needs the same arguments as in upstream's cmd/kube-controller-manager/app,
// which itself must not be imported: it imports all controllers, and the code of all kinds of volumes with them.
func controllers() []controller {
	return []controller{
		{"deployment-controller", deployments},
		{"replicaset-controller", replicaSets},
		{"statefulset-controller", statefulSets},
		{"daemon-set-controller", daemonSets},
		{"job-controller", jobs},
		{"cronjob-controller", cronJobs},
		{"disruption-controller", disruptionBudgets},
		{"generic-garbage-collector", orphans},
		{"namespace-controller", namespaces},
		{"service-account-controller", serviceAccounts},
		{"", tokens},
		{"root-ca-cert-publisher", rootCertificates},
		{"pvc-protection-controller", claims},
		{"pv-protection-controller", volumes},
	}
}

// runControllers runs the controllers, as kube-controller-manager does with --leader-elect=false and --use-service-account-credentials. It
// returns only with an error.
func runControllers(ctx context.Context, args []string) error {
	opts, err := parseOptions(args)
	if err != nil {
		return err
	}
	// Controllers list kinds of all versions, and so deprecated ones.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	m, err := newManager(opts)
	if err != nil {
		return err
	}
	if err := m.await(ctx); err != nil {
		return err
	}
	var loops []loop
	for _, c := range controllers() {
		client, err := m.client(c.account)
		if err != nil {
			return fmt.Errorf("make the client of %q: %w", c.account, err)
		}
		run, err := c.build(ctx, m, client)
		if err != nil {
			return fmt.Errorf("build the controller of %q: %w", c.account, err)
		}
		loops = append(loops, run)
	}
	m.start(ctx)
	for _, run := range loops {
		go run(ctx)
	}
	return healthServer(opts.address).ListenAndServeTLS(opts.certificate, opts.key)
}
