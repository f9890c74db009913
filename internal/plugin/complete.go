package plugin

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/workload"
)

// finder finds completions for what a user has typed.
type finder func(ctx context.Context, cmd *cobra.Command, typed string) ([]cobra.Completion, error)

// complete adds completions of names to the commands. None of them completes files.
func (p *Plugin) complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		for _, name := range []string{"installation", "namespace"} {
			p.completeFlag(cmd, name, p.namespaces)
		}
		for _, name := range []string{"cluster", "clusters"} {
			p.completeFlag(cmd, name, p.clusters)
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

func (p *Plugin) completeFlag(cmd *cobra.Command, name string, find finder) {
	// The only errors are that the flag does not exist, or is already registered.
	_ = cmd.RegisterFlagCompletionFunc(name, p.completing(find))
}

// completing returns completions that the user's permissions allow to find, and none if that fails, because errors are not visible during completion.
func (p *Plugin) completing(find finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), p.completionTime)
		defer cancel()
		p.terminal.answers, p.terminal.errOut = nil, io.Discard // Do not ask questions during completion.
		// All requests end with ctx, including those of discovery, which takes no context.
		err := p.access.open(p.version, func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.WithContext(ctx)) })
		})
		var found []cobra.Completion
		if err == nil {
			found, err = find(ctx, cmd, typed)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(name cobra.Completion) bool {
			// A shell would show and execute text that is not a name.
			return !strings.HasPrefix(name, typed) || slices.Contains(args, name) || !isName(name)
		})
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(found, func(one cobra.Completion) bool { return strings.HasSuffix(one, "/") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // The user continues with the name after the kind.
		}
		return found, directive
	}
}

// isName reports whether a completion has only characters of names of Kubernetes and clusters. Other API servers may return anything.
func isName(completion cobra.Completion) bool {
	return !strings.ContainsFunc(completion, func(r rune) bool {
		isPlain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !isPlain && !strings.ContainsRune("-./,", r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// objects finds the kinds or, after a kind and a slash, the objects of that kind in the namespace.
func (p *Plugin) objects(kinds []string) finder {
	return func(ctx context.Context, cmd *cobra.Command, typed string) ([]cobra.Completion, error) {
		if err := cmd.ValidateArgs(append(cmd.Flags().Args(), typed)); err != nil {
			return nil, err // The command takes no more arguments.
		}
		kind, _, named := strings.Cut(typed, "/")
		if !named {
			found := make([]cobra.Completion, 0, len(kinds))
			for _, kind := range kinds {
				found = append(found, kind+"/")
			}
			return found, nil
		}
		mapping, err := mappingOf(p.access.mapper(), kind)
		if err != nil {
			return nil, err
		}
		namespace := ""
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = p.access.namespace
			if given := cmd.Flag("namespace"); given.Changed {
				namespace = given.Value.String()
			}
		}
		return p.names(ctx, mapping.Resource, namespace, kind+"/")
	}
}

func (p *Plugin) namespaces(ctx context.Context, _ *cobra.Command, _ string) ([]cobra.Completion, error) {
	return p.names(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "")
}

// names returns the names of objects, each with a prefix. It reads only metadata, and so no value of a Secret.
func (p *Plugin) names(ctx context.Context, resource schema.GroupVersionResource, namespace, prefix string) ([]cobra.Completion, error) {
	list, err := p.access.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make([]cobra.Completion, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, prefix+list.Items[i].Name)
	}
	return found, nil
}

// clusters finds the clusters in the stream that the command reads. It keeps those before the last comma.
func (p *Plugin) clusters(ctx context.Context, _ *cobra.Command, typed string) ([]cobra.Completion, error) {
	if !p.isGiven() {
		if err := p.find(ctx); err != nil {
			return nil, err
		}
	}
	reader, err := p.openReader(ctx)
	if err != nil {
		return nil, err
	}
	members, err := reader.Members(ctx)
	if err != nil {
		return nil, err
	}
	before := typed[:strings.LastIndex(typed, ",")+1]
	found := make([]cobra.Completion, 0, len(members))
	for _, member := range members {
		found = append(found, before+member.Cluster)
	}
	return found, nil
}
