package reloader

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// customKind is a kind with a CRD. The API server treats all of those alike.
const customKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.outside.example.com}
spec:
  group: outside.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestTheAPIServerLeavesOutIgnoredNamespaces(t *testing.T) {
	t.Parallel()
	const pods = `{metadata: {labels: {app: x}}, spec: {restartPolicy: %s, containers: [{name: x, image: x}]}}`
	serving := "{selector: {matchLabels: {app: x}}, serviceName: x, template: " + fmt.Sprintf(pods, "Always") + "}"
	job := "{template: " + fmt.Sprintf(pods, "Never") + "}"
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(customKind)))
	for _, tt := range []struct{ name, group, resource, kind, spec string }{
		{"ConfigMaps", "", "configmaps", "ConfigMap", ""},
		{"Secrets", "", "secrets", "Secret", ""},
		{"Deployments", "apps", "deployments", "Deployment", serving},
		{"StatefulSets", "apps", "statefulsets", "StatefulSet", serving},
		{"DaemonSets", "apps", "daemonsets", "DaemonSet", serving},
		{"CronJobs", "batch", "cronjobs", "CronJob", "{suspend: true, schedule: '0 0 1 1 *', jobTemplate: {spec: " + job + "}}"},
		{"Jobs", "batch", "jobs", "Job", "{suspend: true, template: " + fmt.Sprintf(pods, "Never") + "}"},
		{"a kind with a CRD", "outside.example.com", "things", "Thing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, out := plane.Namespace(t), plane.Namespace(t)
			resource := schema.GroupVersionResource{Group: tt.group, Version: "v1", Resource: tt.resource}
			client := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource)
			for _, namespace := range []string{in, out} {
				object := &unstructured.Unstructured{}
				testkit.Must(t, yaml.Unmarshal([]byte("{metadata: {name: x}, spec: "+tt.spec+"}"), &object.Object))
				if tt.spec == "" {
					delete(object.Object, "spec")
				}
				object.SetGroupVersionKind(resource.GroupVersion().WithKind(tt.kind))
				testkit.Await(t, "the object is created", func(ctx context.Context) bool {
					_, err := client.Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
					return err == nil
				})
			}
			outside := metav1.ListOptions{FieldSelector: kube.Outside([]string{"kube-system", out})}
			list, err := client.List(t.Context(), outside)
			testkit.Must(t, err)
			listed := map[string]bool{}
			for _, object := range list.Items {
				listed[object.GetNamespace()] = true
			}
			if !listed[in] || listed[out] || listed["kube-system"] {
				t.Errorf("listed in %v, want in %s and not in %s", listed, in, out)
			}
			outside.ResourceVersion = list.GetResourceVersion()
			watched, err := client.Watch(t.Context(), outside)
			testkit.Must(t, err)
			defer watched.Stop()
			for _, namespace := range []string{out, in} {
				label := []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
				if _, err := client.Namespace(namespace).Patch(t.Context(), "x", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for event := range watched.ResultChan() {
				object, ok := event.Object.(*unstructured.Unstructured)
				if !ok || object.GetNamespace() == out {
					t.Fatalf("watched: %v", event)
				}
				if object.GetNamespace() == in && object.GetLabels()["team"] == "shop" {
					return
				}
			}
			t.Error("the watch ended")
		})
	}
}
