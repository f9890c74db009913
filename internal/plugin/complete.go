package plugin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/workload"
)

// finder finds completions for what a user has typed.
type finder func(ctx context.Context, cmd *cobra.Command, typed string) ([]cobra.Completion, error)

// complete adds completions of names to the commands. None of them completes files.
func (p *Plugin) complete(root *cobra.Command) {
	p.completeFlag(root, "installation", p.namespaces)
	p.completeFlag(root, "cluster", p.clusters)
	for _, cmd := range root.Commands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		for _, flagged := range append(cmd.Commands(), cmd) {
			p.completeFlag(flagged, "namespace", p.namespaces)
			p.completeFlag(flagged, "clusters", p.clusters)
		}
	}
	kinds := workload.BuiltIn().Names()
	for name, find := range map[string]finder{
		"explain": p.objects(kinds), "roll-now": p.objects(kinds),
		"hold": p.objects(slices.Concat(kinds, holdable)), "release": p.objects(slices.Concat(kinds, holdable)),
	} {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			cmd.ValidArgsFunction = p.completing(find)
		}
	}
}

// completeFlag adds completions to a flag, if the command has it.
func (p *Plugin) completeFlag(cmd *cobra.Command, name string, find finder) {
	// The only errors are that the flag does not exist, or is already registered.
	_ = cmd.RegisterFlagCompletionFunc(name, p.completing(find))
}

// completing completes with what can be found with the user's permissions, and with nothing if that fails: errors are not
// visible during completion.
func (p *Plugin) completing(find finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), p.completionTime)
		defer cancel()
		err := commands.Environment(cmd.Flags())
		if err == nil {
			err = p.access.open(p.version, func(next http.RoundTripper) http.RoundTripper { return within(ctx, next) })
		}
		var found []cobra.Completion
		if err == nil {
			found, err = find(ctx, cmd, typed)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(one cobra.Completion) bool {
			name, _, _ := strings.Cut(one, "\t")
			return !strings.HasPrefix(name, typed) || slices.Contains(args, name)
		})
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(found, func(one cobra.Completion) bool { return strings.HasSuffix(one, "/") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // The name follows the kind.
		}
		return found, directive
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// within makes all requests end with ctx, including those of discovery, which takes no context.
func within(ctx context.Context, next http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.WithContext(ctx)) }
}
