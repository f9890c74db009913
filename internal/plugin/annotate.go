package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

const fieldManager = "kubectl-keyturn"

// annotator is a command that annotates the objects named by its arguments, with the rights of the user.
type annotator struct {
	plugin    *Plugin
	cmd       *cobra.Command
	mapper    meta.RESTMapper
	namespace string
	dryRun    bool
	// explains explains a workload, as the command explain does.
	explains func(ctx context.Context, o *object) (*inspect.Report, error)
	// prepared says that the settings of the installation were looked up, and unprepared is the error of that, if any.
	prepared   bool
	unprepared error
	// unreached says that NATS could not be reached. It is not tried again for further objects.
	unreached bool
}

// annotateCommand returns a command that annotates, with the common flags of these commands.
func (p *Plugin) annotateCommand(use, short, example string, run func(ctx context.Context, a *annotator, args []string) error) *cobra.Command {
	a := &annotator{plugin: p}
	a.explains = a.explain
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.access.open(p.version, nil); err != nil {
				return err
			}
			if a.namespace == "" {
				a.namespace = p.access.namespace
			}
			a.mapper, a.cmd = p.access.mapper(), cmd
			return run(cmd.Context(), a, args)
		},
	}
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", "`namespace` of the objects; empty means that of the context")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "let the API server check the change, but change nothing")
	return cmd
}

// each calls do for each object, and continues with the others if one fails.
func (a *annotator) each(args []string, do func(*object) error) error {
	var failures []error
	for _, argument := range args {
		o, err := a.object(argument)
		if err == nil {
			err = do(o)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

type object struct {
	client dynamic.ResourceInterface
	// kind is the kind in lower case, group its API group, and name the name of the object.
	kind, group, name string
	right             right
}

func (o *object) String() string { return o.kind + "/" + o.name }

// object finds the object of an argument such as "deployment/web". The kind may be any of the names that kubectl accepts: deploy, deployments,
// deployments.apps.
func (a *annotator) object(argument string) (*object, error) {
	kind, name, ok := strings.Cut(argument, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q: want <kind>/<name>, such as deployment/web", argument)
	}
	mapping, err := mappingOf(a.mapper, kind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%q: the API server has no kind %s", argument, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", kind, err)
	}
	client := a.plugin.access.dynamic.Resource(mapping.Resource)
	o := &object{
		client: client, kind: strings.ToLower(mapping.GroupVersionKind.Kind), group: mapping.GroupVersionKind.Group,
		name: name, right: right{verb: "patch", resource: mapping.Resource.GroupResource().String()},
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.client, o.right.namespace = client.Namespace(a.namespace), a.namespace
	}
	return o, nil
}

// mappingOf finds a kind by any of its names.
func mappingOf(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	resource, group := schema.ParseResourceArg(kind)
	partial := group.WithVersion("")
	if resource != nil {
		if _, err := mapper.KindFor(*resource); err == nil {
			partial = *resource
		}
	}
	gvk, err := mapper.KindFor(partial)
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// annotate sets an annotation of an object, or removes it if value is nil.
func (a *annotator) annotate(ctx context.Context, o *object, annotation string, value *string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{annotation: value}}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if a.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = o.client.Patch(ctx, o.name, types.MergePatchType, body, options)
	switch {
	case apierrors.IsNotFound(err):
		return o.missing()
	// A refusal by an admission webhook or policy has another message.
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource "):
		return fmt.Errorf("no permission to %s, which annotates %s", o.right, o)
	case err != nil:
		return fmt.Errorf("annotating %s%s: %w", o, in(o.right.namespace), err)
	}
	return nil
}

// hold returns the reason why an object is on hold by its own annotation, or "" if it is not.
func (o *object) hold(ctx context.Context) (string, error) {
	found, err := o.client.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", o.missing()
	case apierrors.IsForbidden(err):
		reads := right{"get", o.right.resource, "", o.right.namespace}
		return "", fmt.Errorf("no permission to %s, which shows whether %s is on hold already", reads, o)
	case err != nil:
		return "", fmt.Errorf("reading %s%s: %w", o, in(o.right.namespace), err)
	}
	return events.HoldText(found.GetAnnotations()[events.AnnotationHold]), nil
}

func (o *object) missing() error { return fmt.Errorf("there is no %s%s", o, in(o.right.namespace)) }
