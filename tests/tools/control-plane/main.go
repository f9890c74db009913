// Command control-plane is every server of the test bed's control plane in one binary: etcd, the API server, the controller manager, the
// scheduler and kwok. The name by which it is called says which of them it is, as in Kubernetes' own hyperkube once.
//
// It exists because they share most of their packages: in one module each is compiled once, and in one binary linked once. It only calls
// the mains, whose code is upstream's. A change of this file needs a new revision in tests/testbed/build/servers.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // For the time zones of CronJobs.

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // As Kubernetes' own mains: the JSON format of logs,
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // and that of the version.
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() { os.Exit(run()) }

func run() int {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(controllers.NewControllerManagerCommand())
	case "kube-scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	case "kwok":
		return runKwok()
	default:
		fmt.Fprintf(os.Stderr, "%s: not the name of a server\n", name)
		return 2
	}
}

// runKwok is kwok's own main.
func runKwok() int {
	// Every command gets the flags of the command line, where a package of Kubernetes has put a --version unlike kwok's.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("Init config flags", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", "err", err)
		return 1
	}
	return 0
}
