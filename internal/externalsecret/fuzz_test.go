package externalsecret

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Anyone who may write an ExternalSecret or a store controls its content.
func FuzzRead(f *testing.F) {
	f.Add(`{"metadata":{"name":"db","namespace":"shop"},"spec":{"secretStoreRef":{"name":"bao"},"data":[{"remoteRef":{"key":"shop/db","version":"1"}}]}}`,
		`{"metadata":{"name":"bao","namespace":"shop"},"spec":{"provider":{"vault":{"server":"https://bao","path":"secret"}}}}`)
	f.Add(`{"metadata":{"namespace":"shop"},"spec":{"refreshInterval":"x","dataFrom":[{"find":{"path":"/","name":{"regexp":"(["}}},{"extract":{"key":"/data/"}}]}}`,
		`{"metadata":{"name":""},"spec":{"provider":{"openBao":{"server":"%zz"}},"conditions":[{"namespaceRegexes":["("]}]}}`)
	f.Add(`{"metadata":{"annotations":5,"ownerReferences":[{"controller":true}]},"status":{"conditions":[{}],"refreshTime":null}}`, `{"spec":{"provider":null}}`)
	f.Add(`{"spec":{"secretStoreRef":{"name":"bao"},"dataFrom":[{"find":{"name":{"regexp":"(?:x{100}){10}"}}},{"find":{"name":{"regexp":"\\pL{1000}"}}}]}}`,
		`{"spec":{"provider":{"vault":{"server":"https://bao","path":"secret"}},"conditions":[{"namespaceRegexes":["((a{100}){10}){10}"]}]}}`)
	rotation, _ := RotationOf(rotated(shopDB, nil))
	f.Fuzz(func(t *testing.T, text, storeText string) {
		obj, storeObj := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &obj.Object) != nil || json.Unmarshal([]byte(storeText), &storeObj.Object) != nil {
			t.Skip("the API server gives objects")
		}
		es, store := Read(obj), ReadStore(storeObj)
		_ = ReadCluster(obj)
		stores := func(types.NamespacedName) *Store { return store }
		found := es.Reads(stores, rotation)
		_ = es.Obstacle()
		for _, place := range es.Places(stores) {
			if place.Path.Mount == "" || place.Path.Namespace == "" || !place.Below && place.Path.Path == "" {
				t.Errorf("the place %+v is nowhere", place)
			}
		}
		if found && len(es.Stores()) == 0 {
			t.Error("it reads a secret from no store")
		}
	})
}
