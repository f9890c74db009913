package forcesync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// parse decodes an object in YAML.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return obj
}

// secret creates a synced ExternalSecret that reads a path in the mount secret. Its name may be preceded by a namespace other than shop.
func (b *bed) secret(name, path, spec string) {
	b.Helper()
	namespace, own, isNamespaced := strings.Cut(name, "/")
	if !isNamespaced {
		namespace, own = "shop", name
	}
	b.add(parse(b, fmt.Sprintf(`
metadata: {namespace: %s, name: %s, uid: uid-%[2]s}
spec: {secretStoreRef: {name: bao, kind: ClusterSecretStore}, refreshInterval: 1h, data: [{remoteRef: {key: %s}}]%s}
status: {syncedResourceVersion: "1-", refreshTime: "2000-01-01T00:00:00Z", conditions: [{type: Ready, status: "True"}]}
`, namespace, own, path, spec)))
}

func (b *bed) add(obj *unstructured.Unstructured) {
	b.with(func() {
		b.write(obj)
		b.written[nameOf(obj)] = "1"
	})
}

// remove deletes an object.
func (b *bed) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	obj := b.objects[types.NamespacedName{Namespace: "shop", Name: name}]
	delete(b.objects, nameOf(obj))
	b.y.index.put(externalsecret.Read(obj), true)
}

// write stores an object under a new version, and shows it to the actuator.
func (b *bed) write(obj *unstructured.Unstructured) {
	b.version++
	obj.SetResourceVersion(strconv.Itoa(b.version))
	b.objects[nameOf(obj)] = obj
	b.show(obj)
}

func (b *bed) show(obj *unstructured.Unstructured) {
	if b.y == nil {
		return
	}
	if obj.GetNamespace() == "" {
		b.y.index.put(externalsecret.ReadCluster(obj), false)
	} else {
		b.y.index.put(externalsecret.Read(obj), false)
	}
}

// patch applies a patch of the actuator, and notifies the operator.
func (b *bed) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	patch := action.(k8stesting.PatchAction)
	found := b.objects[types.NamespacedName{Namespace: patch.GetNamespace(), Name: patch.GetName()}]
	switch {
	case b.refuse != nil:
		return true, nil, b.refuse
	case found == nil:
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: patch.GetResource().Resource}, patch.GetName())
	}
	var body struct {
		Metadata struct {
			UID         types.UID
			Annotations map[string]*string
		}
	}
	if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || body.Metadata.UID != found.GetUID() {
		return true, nil, apierrors.NewConflict(schema.GroupResource{}, patch.GetName(), err)
	}
	after := found.DeepCopy()
	annotations := after.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string)
	}
	for name, value := range body.Metadata.Annotations {
		if delete(annotations, name); value != nil {
			annotations[name] = *value
		}
	}
	after.SetAnnotations(annotations)
	forced, _, _ := strings.Cut(annotations[externalsecret.AnnotationForceSync], "@")
	b.patches = append(b.patches, patch.GetName()+" "+forced)
	b.write(after)
	if after.GetNamespace() != "" {
		b.notice(after)
		return true, after, nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(b.objects), compareNames) {
		child := b.objects[name].DeepCopy()
		if externalsecret.Read(child).Owner == after.GetName() {
			child.SetAnnotations(map[string]string{externalsecret.AnnotationForceSync: annotations[externalsecret.AnnotationForceSync]})
			b.write(child)
			b.notice(child)
		}
	}
	return true, after, nil
}

// notice notifies the operator of a patched ExternalSecret.
func (b *bed) notice(obj *unstructured.Unstructured) {
	b.pending[nameOf(obj)] = true
	b.most = max(b.most, len(b.pending))
	if !b.deaf[obj.GetName()] {
		b.queue <- nameOf(obj)
	}
}

// operate syncs one ExternalSecret at a time, the operator's default.
func (b *bed) operate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-b.queue:
			select {
			case <-ctx.Done():
				return
			case <-time.After(b.took):
				b.sync(ctx, name)
			}
		}
	}
}

func (b *bed) sync(ctx context.Context, name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.objects[name]
	if !ok {
		return
	}
	after := found.DeepCopy()
	conditions := []any{map[string]any{"type": "Ready", "status": "True", "reason": b.reason}}
	status := map[string]any{
		"syncedResourceVersion": fmt.Sprintf("1-%v", after.GetAnnotations()),
		"refreshTime":           time.Now().UTC().Format(time.RFC3339), "conditions": conditions,
	}
	if b.failing[name.Name] {
		status, _, _ = unstructured.NestedMap(found.Object, "status")
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "message": b.message}}
	} else {
		b.synced = append(b.synced, name.Name)
		delete(b.pending, name)
		content := b.content
		if b.read != nil {
			content = b.read(name)
		}
		if b.written[name] != content {
			b.written[name] = content
			b.deliver(ctx, events.Change{
				Source: externalsecret.Read(found).Target, Verb: events.VerbChanged, UID: "s", ResourceVersion: "1", ChangedAt: "1",
			})
		}
	}
	after.Object["status"] = status
	b.write(after)
}
