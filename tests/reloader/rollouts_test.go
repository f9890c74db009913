package reloader

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestRolloutsOfArgoRolloutsRollAsReloaderRollsThem(t *testing.T) {
	serveRollouts(t)
	r := newRig(t)
	cases := rolloutCases()
	for i, c := range cases {
		r.sources(sourceOf(i), "one", c.sourced)
		r.rollout(sourceOf(i), c)
	}
	r.secret("sentinel", map[string]string{"value": "0"})
	r.deploy("sentinel", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "sentinel") })
	r.start("--is-Argo-Rollouts", "true", "--reload-strategy", "annotations")
	for i, c := range cases {
		r.change(sourceOf(i), c.change)
	}
	until := time.Now().Add(testkit.Patience)
	<-time.After(quiet)
	r.rolls("sentinel", func() { r.secret("sentinel", map[string]string{"value": "1"}) })
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object := r.awaitRollout(t, sourceOf(i), c.rolls || c.restarts, until)
			want := int64(1)
			if c.rolls || c.restarts {
				want = 2
			}
			if got := object.GetGeneration(); got != want {
				t.Errorf("generation: got %d, want %d", got, want)
			}
			revision, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "keyturn.dev/revision")
			restart, _, _ := unstructured.NestedString(object.Object, "spec", "restartAt")
			if (revision != "") != c.rolls || (restart != "") != c.restarts {
				t.Errorf("revision %q on the pod template (wanted: %t), restart at %q (wanted: %t)", revision, c.rolls, restart, c.restarts)
			}
		})
	}
}

func sourceOf(number int) string { return fmt.Sprintf("source-%02d", number) }

// rollouts are the Rollouts in the rig's namespace.
func (r *rig) rollouts() dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	return dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(r.namespace)
}

// sources creates a Secret and a ConfigMap.
func (r *rig) sources(name, value string, annotations map[string]string) {
	r.Helper()
	meta := metav1.ObjectMeta{Name: name, Annotations: annotations}
	secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"value": value}}
	if _, err := r.client.CoreV1().Secrets(r.namespace).Create(r.Context(), secret, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"value": value}}
	if _, err := r.client.CoreV1().ConfigMaps(r.namespace).Create(r.Context(), configMap, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// change changes the content of one of the two, and nothing else.
func (r *rig) change(name, kind string) {
	r.Helper()
	patch := []byte(`{"data":{"value":"dHdv"}}`)
	var err error
	if kind == "secret" {
		_, err = r.client.CoreV1().Secrets(r.namespace).Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = r.client.CoreV1().ConfigMaps(r.namespace).Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// rollout creates the Rollout of a case. SOURCE in its annotations is the name of its sources.
func (r *rig) rollout(name string, c rolloutCase) {
	r.Helper()
	labels := map[string]string{"app": name}
	template := programs.PodTemplate(labels)
	template.Annotations = c.templated
	c.read(&template, name)
	pods, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		r.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}}, "strategy": map[string]any{"canary": map[string]any{}}, "template": pods,
		},
	}}
	object.SetName(name)
	annotations := maps.Clone(c.annotations)
	for key, value := range annotations {
		annotations[key] = strings.ReplaceAll(value, "SOURCE", name)
	}
	object.SetAnnotations(annotations)
	if _, err := r.rollouts().Create(r.Context(), object, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// awaitRollout returns a Rollout, when its spec has been written if it is to be, or when it is late.
func (r *rig) awaitRollout(t *testing.T, name string, written bool, until time.Time) *unstructured.Unstructured {
	t.Helper()
	var object *unstructured.Unstructured
	testkit.Await(t, "there is the Rollout "+name, func(ctx context.Context) bool {
		var err error
		if object, err = r.rollouts().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		return !written || object.GetGeneration() > 1 || time.Now().After(until)
	})
	return object
}
