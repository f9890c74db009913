package inspect

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// reads are ways to read one object by its name. The actuator in its pod has permission to list workloads, but not to get them; other users may
// only be allowed to get certain names.
type reads []func(ctx context.Context, name string) (runtime.Object, error)

// read reads an object in the first way that is permitted.
func (r reads) read(ctx context.Context, name string) (object runtime.Object, err error) {
	for _, read := range r {
		if object, err = read(ctx, name); !apierrors.IsForbidden(err) {
			break
		}
	}
	return object, err
}

// listed returns a way to read an object that lists the objects with its name.
func listed[List runtime.Object](list func(context.Context, metav1.ListOptions) (List, error)) func(context.Context, string) (runtime.Object, error) {
	return func(ctx context.Context, name string) (runtime.Object, error) {
		found, err := list(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
		if err != nil {
			return nil, err
		}
		objects, err := meta.ExtractList(found)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if one, err := meta.Accessor(object); err == nil && one.GetName() == name {
				return object, nil
			}
		}
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: name + " is not listed"}}
	}
}
