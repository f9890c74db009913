package externalsecret

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
)

// object decodes an object in the namespace shop.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if obj.GetName() == "" {
		obj.SetName("db")
		obj.SetNamespace("shop")
	}
	return obj
}

// externalSecretOf returns an ExternalSecret with a spec.
func externalSecretOf(t *testing.T, spec string) *ExternalSecret {
	t.Helper()
	return Read(object(t, "spec: "+spec))
}

// storesOf returns one SecretStore and one ClusterSecretStore with the same provider, both named bao.
func storesOf(t *testing.T, provider string) Stores {
	t.Helper()
	own := ReadStore(object(t, "metadata: {name: bao, namespace: shop}\nspec: {provider: "+provider+"}"))
	cluster := ReadStore(object(t, "metadata: {name: bao}\nspec: {provider: "+provider+"}"))
	return func(name types.NamespacedName) *Store {
		switch name {
		case types.NamespacedName{Namespace: "shop", Name: "bao"}:
			return own
		case types.NamespacedName{Name: "bao"}:
			return cluster
		}
		return nil
	}
}

// rotated is the event of a second version of a KV version 2 secret at https://bao:8200.
func rotated(path events.StorePath, mutate func(*events.Change)) events.Change {
	if path.Store == "" {
		path.Store = "main"
	}
	if path.Namespace == "" {
		path.Namespace = events.RootNamespace
	}
	change := events.Change{
		Source: path.Source(), Verb: events.VerbRotated,
		Store: &events.StoreState{Servers: []string{"https://bao:8200"}, Engine: events.EngineKV, Version: 2, Revision: "2", Operation: "update"},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// reads reports whether an ExternalSecret reads what a change wrote.
func reads(t *testing.T, es *ExternalSecret, stores Stores, change events.Change) bool {
	t.Helper()
	rotation, ok := RotationOf(change)
	if !ok {
		t.Fatalf("%s is no rotation", change.Source)
	}
	found, _ := es.Reads(stores, rotation)
	// The keys of the rotation must find every reader in the index.
	byKey := false
	for _, place := range es.Places(stores) {
		for _, key := range rotation.Keys() {
			byKey = byKey || place.Key == key
		}
	}
	if found && !byKey {
		t.Errorf("it reads %s, and is not found by a key of it", change.Source)
	}
	return found
}
