package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ReadManifests decodes the documents of YAML or JSON, and expands lists. It skips documents that are not for an API server:
// empty ones and kustomizations.
func ReadManifests(r io.Reader) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4<<10)
	var objects []*unstructured.Unstructured
	for {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode a manifest: %w", err)
		}
		object := &unstructured.Unstructured{Object: content}
		if len(content) == 0 || object.GroupVersionKind().Group == "kustomize.config.k8s.io" {
			continue
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err := object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("decode a list of manifests: %w", err)
		}
	}
}

// readManifestFiles reads files, and all .yaml and .yml files in folders, but not in their subfolders.
func readManifestFiles(paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			read, err := ReadManifests(bytes.NewReader(content))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, read...)
		}
	}
	return objects, nil
}

func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// selectKinds returns the objects of the kinds, or all if there are no kinds, in an order in which they can be applied:
// namespaces and definitions come before the objects that need them.
func selectKinds(objects []*unstructured.Unstructured, kinds []string) []*unstructured.Unstructured {
	rank := func(o *unstructured.Unstructured) int {
		return slices.Index([]string{crdKind, "Namespace"}, o.GetKind())
	}
	selected := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, o.GetKind())
	})
	slices.SortStableFunc(selected, func(a, b *unstructured.Unstructured) int { return rank(b) - rank(a) })
	return selected
}

// Kustomize returns the output of "kubectl kustomize" for a folder. If necessary, kubectl is built first, with progress to
// log.
func Kustomize(ctx context.Context, log io.Writer, dir string) ([]byte, error) {
	kubectl, err := build.Binary(ctx, log, build.Kubectl)
	if err != nil {
		return nil, err
	}
	out, err := process.Capture(exec.CommandContext(ctx, kubectl, "kustomize", dir))
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", dir, err)
	}
	return out, nil
}
