package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// unordered returns an account with its permissions, and a ConfigMap, in an order in which they cannot be applied.
func unordered(namespace string) io.Reader {
	return strings.NewReader(strings.ReplaceAll(`
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
---
# Nothing but a comment.
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAMESPACE}
data: {color: blue}
---
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: reader, namespace: NAMESPACE}
  rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: reader, namespace: NAMESPACE}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
  subjects: [{kind: ServiceAccount, name: reader, namespace: NAMESPACE}]
---
{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "NAMESPACE"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
`, "NAMESPACE", namespace))
}

func TestApply(t *testing.T) {
	const namespace = "applied"
	configMaps := bed.client.CoreV1().ConfigMaps(namespace)
	if err := bed.ApplyYAML(t.Context(), unordered(namespace), RBACKinds()...); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want not found: its kind was not asked for", err)
	}
	for range 2 { // applying again changes nothing
		if err := bed.ApplyYAML(t.Context(), unordered(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		got, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Data["color"] != "blue" || got.ManagedFields[0].Manager != fieldManager {
			t.Errorf("%s: got %v, managed by %q", when, got.Data, got.ManagedFields[0].Manager)
		}
	}
	check("applied")
	for when, change := range map[string]func() error{
		"after a change by somebody else": func() error {
			_, err := configMaps.Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"data":{"color":"red"}}`), metav1.PatchOptions{})
			return err
		},
		"after it was deleted": func() error { return configMaps.Delete(t.Context(), "settings", metav1.DeleteOptions{}) },
	} {
		if err := errors.Join(change(), bed.ApplyYAML(t.Context(), unordered(namespace))); err != nil {
			t.Fatal(err)
		}
		check(when)
	}
}

func TestKindsOfAnOperatorAreAppliedAsLongAsTheyAreNotThere(t *testing.T) {
	served := func() (names []string) {
		t.Helper()
		list, err := bed.applier.metadata.Resource(definitions).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasSuffix(name, ".secrets-store.csi.x-k8s.io") {
				names = append(names, name)
			}
		}
		return names
	}
	apply := func(kinds ...string) {
		t.Helper()
		if err := bed.ApplyKindsOf(t.Context(), build.SecretsStore, kinds...); err != nil {
			t.Fatal(err)
		}
	}
	const class = "secretproviderclasses.secrets-store.csi.x-k8s.io"
	for range 2 {
		apply("SecretProviderClass")
		if got := served(); !slices.Equal(got, []string{class}) {
			t.Fatalf("one kind was applied: got %q", got)
		}
		if err := bed.applier.metadata.Resource(definitions).Delete(t.Context(), class, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "the kind is gone", func(context.Context) bool { return len(served()) == 0 })
	}
	apply()
	if got := served(); len(got) < 2 {
		t.Errorf("all kinds were applied: got %q", got)
	}
}

func TestApplyCustomResource(t *testing.T) {
	if err := bed.Apply(t.Context(), "testdata"); err != nil {
		t.Fatal(err)
	}
	// A kind may be known a moment later, so Apply looks again until the context is done.
	once, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	testkit.Await(t, "the error says that there is no such kind", func(context.Context) bool {
		err = bed.ApplyYAML(once, strings.NewReader("{apiVersion: keyturn.test/v1, kind: Unknown, metadata: {name: x}}"))
		return meta.IsNoMatchError(err)
	}, func() string { return fmt.Sprint(err) })
}

func TestReadManifestsRefusesWhatIsNoYAML(t *testing.T) {
	if _, err := ReadManifests(strings.NewReader("a: [")); err == nil {
		t.Error("no error")
	}
}
