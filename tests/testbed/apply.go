package testbed

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RBACKinds returns the kinds that give a program its identity and permissions, and that start nothing.
func RBACKinds() []string {
	return []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
}

// Apply applies all objects of YAML files, and of the .yaml and .yml files in folders, like [ControlPlane.ApplyYAML].
func (cp *ControlPlane) Apply(ctx context.Context, paths ...string) error {
	return cp.ApplyKinds(ctx, nil, paths...)
}

// ApplyKinds is like [ControlPlane.Apply], but only for objects of the given kinds, such as [RBACKinds].
func (cp *ControlPlane) ApplyKinds(ctx context.Context, kinds []string, paths ...string) error {
	objects, err := readManifestFiles(paths)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return cp.apply(ctx, selectKinds(objects, kinds))
}

// ApplyYAML applies the documents of YAML server-side, as the admin, with the field manager "testbed": namespaces first, then
// custom resource definitions, whose kinds it waits for, then the others in their order. Namespaced objects without a namespace
// go to "default". An object that is as ApplyYAML has left it is not applied again. It stops at the first error.
func (cp *ControlPlane) ApplyYAML(ctx context.Context, r io.Reader) error {
	objects, err := ReadManifests(r)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return cp.apply(ctx, selectKinds(objects, nil))
}

func (cp *ControlPlane) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := cp.applier.apply(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
