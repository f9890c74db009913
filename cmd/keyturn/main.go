// Keyturn is one binary for users and for pods. Its commands, also as a plugin of kubectl, ask an installation what changed, what was done about it,
// and why. Its programs are watcher and actuator in one process, their NATS, and the projector.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // A kubeconfig may name any auth plugin.

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/plugin"
)

// version is set when a release is built.
var version = "dev"

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error {
		people := plugin.New(version)
		defer people.Close()
		cmd := newCommand(people, os.Args[0])
		cmd.SetArgs(arguments(os.Args))
		return cmd.ExecuteContext(ctx)
	}))
}

// The groups of commands in the help.
const (
	forPeople = "people"
	programs  = "programs"
)

// newCommand returns the command under the name by which it was called.
func newCommand(people *plugin.Plugin, name string) *cobra.Command {
	root := people.Command()
	root.AddCommand(newKeysCommand())
	root.AddGroup(&cobra.Group{ID: forPeople, Title: "Commands:"}, &cobra.Group{ID: programs, Title: "Programs, which run in pods:"})
	for _, cmd := range root.Commands() {
		cmd.GroupID = forPeople
	}
	for _, cmd := range []*cobra.Command{
		newRunCommand(bothHeap), newReloaderCommand(bothHeap), newNATSCommand(natsHeap), newProjectCommand(projectHeap),
	} {
		cmd.GroupID = programs
		root.AddCommand(cmd)
	}
	if strings.HasPrefix(filepath.Base(name), "kubectl") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl keyturn"}
	}
	return root
}

// arguments returns the command's arguments. kubectl completes the arguments of a plugin by a program beside it, kubectl_complete-keyturn, which is
// this one under that name.
func arguments(words []string) []string {
	if strings.HasPrefix(filepath.Base(words[0]), "kubectl_complete-keyturn") {
		return append([]string{"__complete"}, words[1:]...)
	}
	return words[1:]
}
