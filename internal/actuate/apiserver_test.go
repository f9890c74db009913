package actuate

import (
	"encoding/json"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"
)

// patched returns what an API server makes of an object and a JSON patch of it. A patch that does not apply is answered as the API server does.
func patched(object runtime.Object, action k8stesting.Action) (runtime.Object, error) {
	tracker := k8stesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	if err := tracker.Add(object); err != nil {
		return nil, err
	}
	_, after, err := k8stesting.ObjectReaction(tracker)(action)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, nil
}

// operation is one step of a JSON patch.
type operation struct {
	Op, Path string
	Value    any
}

// operationsOf returns what the steps of a JSON patch set, by JSON pointer, and what they test, removals included.
func operationsOf(body []byte) (sets, tests map[string]any, err error) {
	var operations []operation
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, nil, err
	}
	sets, tests = make(map[string]any), make(map[string]any)
	for _, o := range operations {
		switch o.Op {
		case "add":
			sets[o.Path] = o.Value
		case "remove":
			sets[o.Path] = nil
		default:
			tests[o.Path] = o.Value
		}
	}
	return sets, tests, nil
}

// setIn returns the text that a JSON patch sets an annotation to, empty if it does not set it.
func setIn(body []byte, annotation string) string {
	sets, _, _ := operationsOf(body)
	for path, value := range sets {
		if text, ok := value.(string); ok && strings.HasSuffix(path, "/"+strings.ReplaceAll(annotation, "/", "~1")) {
			return text
		}
	}
	return ""
}
