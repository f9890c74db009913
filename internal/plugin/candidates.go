package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/keyturn/keyturn/internal/inspect"
)

// objects finds the kinds, and once a kind is typed, by any of its names, the objects of that kind in the namespace.
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
		mapper, err := p.access.mapper()
		if err != nil {
			return nil, err
		}
		mapping, err := mappingOf(mapper, kind)
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

// namespaces finds the namespaces.
func (p *Plugin) namespaces(ctx context.Context, _ *cobra.Command, _ string) ([]cobra.Completion, error) {
	return p.names(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "")
}

// names returns the names of objects, each after a prefix. It reads only metadata, and so no value of a Secret.
func (p *Plugin) names(ctx context.Context, resource schema.GroupVersionResource, namespace, prefix string) ([]cobra.Completion, error) {
	client, err := metadata.NewForConfig(p.access.config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make([]cobra.Completion, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, prefix+list.Items[i].Name)
	}
	return found, nil
}

// clusters finds the clusters in the stream that the command reads. Those that are typed before a comma are kept.
func (p *Plugin) clusters(ctx context.Context, cmd *cobra.Command, typed string) ([]cobra.Completion, error) {
	streams, err := p.streamsOf(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if stream := cmd.Flag("stream"); stream != nil {
		streams.Stream = stream.Value.String()
	}
	reader, disconnect, err := streams.OpenReader(ctx)
	if err != nil {
		return nil, err
	}
	defer disconnect()
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

// streamsOf returns how to reach the streams, by the flags of a command that is being completed.
func (p *Plugin) streamsOf(ctx context.Context, cmd *cobra.Command) (inspect.Streams, error) {
	if err := p.configure(ctx, cmd.Flags()); err != nil {
		return inspect.Streams{}, err
	}
	return p.streams(ctx)
}
