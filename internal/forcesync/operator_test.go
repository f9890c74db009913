package forcesync

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

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
	conditions := []any{map[string]any{"type": "Ready", "status": "True"}}
	status := map[string]any{
		"syncedResourceVersion": fmt.Sprintf("1-%v", after.GetAnnotations()),
		"refreshTime":           time.Now().UTC().Format(time.RFC3339), "conditions": conditions,
	}
	if b.failing[name.Name] {
		status, _, _ = unstructured.NestedMap(found.Object, "status")
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False"}}
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
