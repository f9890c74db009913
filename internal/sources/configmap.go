package sources

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

var configMapSource = sourceKind{
	kind:     events.KindConfigMap,
	resource: "configmaps",
	informer: func(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
		return factory.Core().V1().ConfigMaps().Informer()
	},
	reduce: func(ring *keyring, obj any) (*object, bool) {
		configMap, ok := obj.(*corev1.ConfigMap)
		if !ok {
			return nil, false
		}
		// A key is in only one of the two maps, and a pod cannot tell which.
		data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
		for name, value := range configMap.Data {
			data[name] = []byte(value)
		}
		maps.Copy(data, configMap.BinaryData)
		return newObject(ring, events.KindConfigMap, &configMap.ObjectMeta, data), true
	},
	assess: assessContent,
}
