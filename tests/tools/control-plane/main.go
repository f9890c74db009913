// Command control-plane is every server of the test bed's control plane in one binary: etcd, the API server, the controllers and a node. The
// name by which it is called says which of them it is, as in Kubernetes' own hyperkube once.
//
// It exists because they share most of their packages: in one module each is compiled once, and in one binary linked once. etcd and the API
// server are upstream's mains. The controllers are upstream's too, but only those that tests rely on: all of them need 280 packages more. The
// node is the part of a scheduler and of a kubelet that tests see. A change of these files needs a new revision in
// tests/testbed/build/servers.go.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // For the time zones of CronJobs.

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // As the API server's own main: the JSON format of logs,
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // and that of the version.
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(run()) }

func run() int {
	var serve func(ctx context.Context, args []string) error
	name := filepath.Base(os.Args[0])
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		serve = runControllers
	case "simulated-node":
		serve = runNode
	default:
		fmt.Fprintf(os.Stderr, "%s: not the name of a server\n", name)
		return 2
	}
	// Nothing has to end in order, so a signal ends these servers at once.
	if err := serve(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
