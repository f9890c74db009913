package workload

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/kube"
)

// object is a pointer to an object of the API.
type object[T any] interface {
	*T
	runtime.Object
}

// patches patches the objects of one kind in one namespace.
type patches[T any, Object object[T]] struct {
	client interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
		Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresource ...string) (Object, error)
	}
	// unrecorded is Clients.Unrecorded.
	unrecorded bool
}

// send sends a patch, which has no effect if dryRun is metav1.DryRunAll. If unrecorded is set and permission is missing, it returns the object
// that the patch would have made, and an error that wraps ErrUnrecorded.
func (s patches[T, Object]) send(ctx context.Context, name string, p Patch, dryRun ...string) (Object, error) {
	obj, refused := s.client.Patch(ctx, name, p.Type, p.Body, metav1.PatchOptions{FieldManager: FieldManager, DryRun: dryRun})
	if !s.unrecorded || !kube.IsMissingRight(refused, "patch") {
		return obj, refused
	}
	obj, err := s.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading what may not be patched: %w", err)
	}
	after := Object(new(T))
	if err := p.apply(obj, after); err != nil {
		return nil, err
	}
	return after, fmt.Errorf("%w: %w", ErrUnrecorded, refused)
}

// apply applies the patch to obj as the API server would, and writes the result into after, which must be empty.
func (p Patch) apply(obj, after runtime.Object) error {
	before, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding what may not be patched: %w", err)
	}
	operations, err := jsonpatch.DecodePatch(p.Body)
	if err != nil {
		return fmt.Errorf("decoding a patch: %w", err)
	}
	made, err := operations.Apply(before)
	if err != nil {
		return kube.NotApplied()
	}
	if err := json.Unmarshal(made, after); err != nil {
		return fmt.Errorf("decoding what may not be patched: %w", err)
	}
	about, err := meta.Accessor(after)
	if err != nil {
		return fmt.Errorf("decoding what may not be patched: %w", err)
	}
	about.SetManagedFields(nil) // They say nothing of what the patch would have written.
	return nil
}
