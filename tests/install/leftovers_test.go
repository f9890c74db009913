package install

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// item is an object that was found in the namespace of the programs.
type item struct {
	dynamic.ResourceInterface
	kind, name string
}

// left returns all objects in the namespace of the programs, except Events and those that every namespace has.
func (r *release) left(ctx context.Context) ([]item, error) {
	groups, err := r.kube.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var left []item
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, groups) {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			objects := r.objects.Resource(version.WithResource(resource.Name)).Namespace(programs.SystemNamespace)
			list, err := objects.List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource.Name, err)
			}
			for _, object := range list.Items {
				found := item{objects, resource.Kind, object.GetName()}
				if found.kind != "Event" && found.String() != "ConfigMap kube-root-ca.crt" && found.String() != "ServiceAccount default" {
					left = append(left, found)
				}
			}
		}
	}
	return left, nil
}

func (i item) String() string { return i.kind + " " + i.name }

// clear removes all that an installation has made, but the namespace, which takes its time to go.
func (r *release) clear() {
	ctx, stop := running.WithTimeout(context.WithoutCancel(r.Context()), testkit.Patience)
	defer stop()
	background := metav1.DeletePropagationBackground
	remove := func(what dynamic.ResourceInterface, name string) {
		err := what.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			r.Error(err)
		}
	}
	for _, object := range r.made {
		if object.GetNamespace() == "" {
			remove(r.resource(object), object.GetName())
		}
	}
	var left []item
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = r.left(ctx)
		for _, one := range left {
			remove(one, one.name)
		}
		return err == nil && len(left) == 0, nil
	})
	if err != nil {
		r.Errorf("there is something left of the installation: %v: %v", left, err)
	}
}
