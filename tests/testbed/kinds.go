package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

const crdKind = "CustomResourceDefinition"

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installed are the kinds of operators that were applied.
type installed struct {
	sync.Mutex // held while kinds are applied, so that nobody takes for served what another caller still waits for
	// names are those of the definitions, by the operator and the kinds that were asked for.
	names map[string][]string
}

// ApplyKindsOf applies the custom resource definitions of an operator, such as [build.CertManager], but does not start it, so objects of its
// kinds stay as they are. If there are kinds, such as "Rollout", it applies only theirs. Definitions that it has applied, and that nobody has
// deleted since, it does not even read again: some operators have megabytes of them, which take seconds.
func (cp *ControlPlane) ApplyKindsOf(ctx context.Context, operator string, kinds ...string) error {
	if err := cp.install(ctx, operator, kinds); err != nil {
		return fmt.Errorf("apply the kinds of %s: %w", operator, err)
	}
	return nil
}

func (cp *ControlPlane) install(ctx context.Context, operator string, kinds []string) error {
	cp.installed.Lock()
	defer cp.installed.Unlock()
	asked := strings.Join(append([]string{operator}, kinds...), " ")
	if names, before := cp.installed.names[asked]; before {
		if missing, err := cp.isMissing(ctx, names); err != nil || !missing {
			return err
		}
	}
	dir, err := build.Kinds(ctx, operator)
	if err != nil {
		return err
	}
	objects, err := readDefinitions(dir, kinds)
	if err != nil {
		return err
	}
	if err := cp.apply(ctx, objects); err != nil {
		return err
	}
	names := make([]string, len(objects))
	for i, object := range objects {
		names[i] = object.GetName()
	}
	cp.installed.names[asked] = names
	return nil
}

// isMissing reports whether one of the definitions is not there any more.
func (cp *ControlPlane) isMissing(ctx context.Context, names []string) (bool, error) {
	list, err := cp.applier.metadata.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	there := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	return slices.ContainsFunc(names, func(name string) bool { return !there[name] }), nil
}

// readDefinitions reads the custom resource definitions in a folder that are of the kinds, or all if there are no kinds. A file without any of
// them is not decoded.
func readDefinitions(dir string, kinds []string) ([]*unstructured.Unstructured, error) {
	files, err := manifestFiles(dir)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		isOf := func(kind string) bool { return bytes.Contains(content, []byte("\n    kind: "+kind+"\n")) }
		if len(kinds) > 0 && !slices.ContainsFunc(kinds, isOf) {
			continue
		}
		read, err := ReadManifests(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, read...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s has none of the kinds %q", dir, kinds)
	}
	return objects, nil
}
