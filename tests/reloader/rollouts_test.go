package reloader

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

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
	t.Parallel()
	serveRollouts(t)
	r := newRig(t)
	cases := rolloutCases()
	for i, c := range cases {
		r.sources(sourceOf(i), "one", c.sourced)
		r.rollout(sourceOf(i), c)
	}
	r.placeSentinels(auto())
	r.start("--is-Argo-Rollouts", "true", "--reload-strategy", "annotations")
	for i, c := range cases {
		r.change(sourceOf(i), c.change, "two")
	}
	r.awaitRollouts(cases)
	r.passSentinels()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object, err := r.rollouts().Get(t.Context(), sourceOf(i), metav1.GetOptions{})
			testkit.Must(t, err)
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
func (r *rig) change(name, kind, value string) {
	r.Helper()
	var err error
	if kind == "secret" {
		patch := fmt.Appendf(nil, `{"stringData":{"value":%q}}`, value)
		_, err = r.client.CoreV1().Secrets(r.namespace).Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		patch := fmt.Appendf(nil, `{"data":{"value":%q}}`, value)
		_, err = r.client.CoreV1().ConfigMaps(r.namespace).Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	testkit.Must(r, err)
}

// rollout creates the Rollout of a case. SOURCE in its annotations is the name of its sources.
func (r *rig) rollout(name string, c rolloutCase) {
	r.Helper()
	labels := map[string]string{"app": name}
	template := programs.PodTemplate(labels)
	template.Annotations = c.templated
	c.read(&template, name)
	pods, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	testkit.Must(r, err)
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

// awaitRollouts waits until the spec of each Rollout has been written for which a case says so.
func (r *rig) awaitRollouts(cases []rolloutCase) {
	r.Helper()
	var late []string
	testkit.Await(r.T, "the Rollouts are written that are to be", func(ctx context.Context) bool {
		list, err := r.rollouts().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		written := map[string]bool{}
		for _, object := range list.Items {
			written[object.GetName()] = object.GetGeneration() > 1
		}
		late = nil
		for i, c := range cases {
			if (c.rolls || c.restarts) && !written[sourceOf(i)] {
				late = append(late, c.name)
			}
		}
		return len(late) == 0
	}, func() string { return "not written: " + strings.Join(late, "; ") })
}
