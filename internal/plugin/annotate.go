package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
)

// fieldManager is the field manager of the annotations that the plugin writes.
const fieldManager = "kubectl-keyturn"

// annotator sets and removes annotations of objects, with the rights of the user.
type annotator struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// namespace is the namespace of namespaced objects.
	namespace string
	dryRun    bool
}

// object is an object that can be annotated.
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
	return a.of(mapping, name), nil
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

func (a *annotator) of(mapping *meta.RESTMapping, name string) *object {
	resource := mapping.Resource.GroupResource().String()
	o := &object{kind: strings.ToLower(mapping.GroupVersionKind.Kind), group: mapping.GroupVersionKind.Group, name: name}
	o.client = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.client = a.client.Resource(mapping.Resource).Namespace(a.namespace)
		o.right.namespace = a.namespace
	}
	o.right.verb, o.right.resource = "patch", resource
	return o
}

// annotate sets annotations of an object, or removes those without a value, and returns the changed object. In a dry run, the API server returns
// the object as it would be.
func (a *annotator) annotate(ctx context.Context, o *object, annotations map[string]*string) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if a.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := o.client.Patch(ctx, o.name, types.MergePatchType, body, options)
	switch {
	case apierrors.IsNotFound(err):
		return nil, o.missing()
	case isMissingRight(err):
		return nil, fmt.Errorf("no permission to %s, which annotates %s", o.right, o)
	case err != nil:
		return nil, fmt.Errorf("annotating %s%s: %w", o, in(o.right.namespace), err)
	}
	return after, nil
}

// hold returns the reason why an object is on hold by its own annotation, or "" if it is not.
func (o *object) hold(ctx context.Context) (string, error) {
	found, err := o.client.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", o.missing()
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("no permission to %s, which shows whether %s is on hold already", right{"get", o.right.resource, o.right.namespace}, o)
	case err != nil:
		return "", fmt.Errorf("reading %s%s: %w", o, in(o.right.namespace), err)
	}
	return events.HoldText(found.GetAnnotations()[events.AnnotationHold]), nil
}

func (o *object) missing() error { return fmt.Errorf("there is no %s%s", o, in(o.right.namespace)) }

// isMissingRight reports whether the API server refuses a patch because the user lacks permission. The message of a refusal by
// admission is different.
func isMissingRight(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, " cannot patch resource ")
}

// in returns where an object is, for people.
func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
