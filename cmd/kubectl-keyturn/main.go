// kubectl-keyturn is a plugin of kubectl that asks an installation of Keyturn what changed, what was done about it, and why.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // A kubeconfig may name any of them.

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/plugin"
)

// version is set when a release is built.
var version = "dev"

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error {
		return plugin.New(version).Run(ctx, arguments(os.Args), os.Stdout, os.Stderr)
	}))
}

// arguments returns those of the command. kubectl completes the arguments of a plugin by a program beside it, kubectl_complete-keyturn, which is this
// one under that name.
func arguments(words []string) []string {
	if strings.HasPrefix(filepath.Base(words[0]), "kubectl_complete-keyturn") {
		return append([]string{"__complete"}, words[1:]...)
	}
	return words[1:]
}
