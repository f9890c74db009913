// Command argo-cd runs Argo CD's repository server and its application controller for the tests, in one process, and a Redis in memory.
//
// It exists because upstream's one command brings the API server, the command line and all else with it, and because it needs a Redis. It only
// starts upstream's own commands. A change of this file needs a new revision in tests/testbed/build/servers.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	repository "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

const loopback = "127.0.0.1"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "argo-cd:", err)
		os.Exit(1)
	}
}

// run returns when a signal has ended both commands, which handle it themselves, or when one of them cannot go on.
func run() error {
	kubeconfig := flag.String("kubeconfig", "", "file that says where the API server is and who we are")
	namespace := flag.String("namespace", "argocd", "where the Applications are")
	port := flag.Int("repo-server-port", 0, "port of the repository server, on loopback")
	repositoryMetrics := flag.Int("repo-server-metrics-port", 0, "port of its metrics and health, on loopback")
	metrics := flag.Int("metrics-port", 0, "port of the application controller's metrics and health")
	flag.Parse()

	redis, err := miniredis.Run()
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	defer redis.Close()
	group, ctx := errgroup.WithContext(context.Background())
	group.Go(func() error {
		return execute(ctx, repository.NewCommand(), "--redis="+redis.Addr(), "--disable-tls", "--client-ca-path=",
			"--address="+loopback, fmt.Sprintf("--port=%d", *port),
			"--metrics-address="+loopback, fmt.Sprintf("--metrics-port=%d", *repositoryMetrics))
	})
	group.Go(func() error {
		return execute(ctx, controller.NewCommand(), "--redis="+redis.Addr(), "--kubeconfig="+*kubeconfig, "--namespace="+*namespace,
			fmt.Sprintf("--repo-server=%s:%d", loopback, *port), "--repo-server-plaintext", fmt.Sprintf("--metrics-port=%d", *metrics))
	})
	return group.Wait()
}

func execute(ctx context.Context, command *cobra.Command, args ...string) error {
	command.SilenceUsage = true
	command.SetArgs(args)
	if err := command.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", command.Name(), err)
	}
	return nil
}
