package sources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
)

// secretsStore is the API of the Secrets Store CSI driver.
var secretsStore = schema.GroupVersion{Group: "secrets-store.csi.x-k8s.io", Version: "v1"}

// secretProviderClassSource is what the driver mounts. Only the annotations of the object itself matter: its content is what the driver reports for
// each pod in a podStatus.
var secretProviderClassSource = sourceKind{
	kind:     events.KindSecretProviderClass,
	resource: "secretproviderclasses." + secretsStore.Group,
	custom:   secretsStore.WithResource("secretproviderclasses"),
	grant:    grantSecretProviderClasses,
	part:     &podStatusPart,
	reduce: func(_ *keyring, obj any) (*object, bool) {
		resource, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, false
		}
		return &object{
			source: nameOf(events.KindSecretProviderClass, resource), UID: resource.GetUID(), ResourceVersion: resource.GetResourceVersion(),
		}, true
	},
	assess: func(v view, before *lastEvent, now *object, _ bool) (events.Change, bool) {
		if now == nil {
			return goneClass(v, before)
		}
		pods := v.contents.of(v.cached.podStatuses(now.source))
		if !before.isReadable() {
			return firstOfClass(now, pods)
		}
		news := newsOfClass(before, now, pods)
		v.contents.settle(pods, news)
		return compareClass(before, now, pods, news)
	},
}

// goneClass returns the event for a class that does not exist. A pod's status may be listed before its class.
func goneClass(v view, before *lastEvent) (events.Change, bool) {
	if !before.isReadable() || before.Verb() == events.VerbDeleted || !v.hasListed(events.KindSecretProviderClass) {
		return events.Change{}, false
	}
	return before.content(events.VerbDeleted), true
}
