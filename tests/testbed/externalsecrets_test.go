package testbed

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

func TestExternalSecretsSyncsWhatIsForced(t *testing.T) {
	store := secretstore.Run(t, secretstore.Options{Log: os.Stderr})
	put := func(color string) {
		t.Helper()
		if _, err := store.Client().KVv2("secret").Put(t.Context(), "app/db", map[string]any{"color": color}); err != nil {
			t.Fatal(err)
		}
	}
	put("blue")
	start := time.Now()
	operator := startExternalSecrets(t, ExternalSecretsOptions{})
	t.Logf("start of External Secrets: %v", time.Since(start))

	namespace := bed.Namespace(t)
	objects := manifests.Join(
		manifests.SecretStore{Namespace: namespace, Name: "store", Address: store.Address(), Token: store.Token()}.YAML(),
		manifests.ExternalSecret{Namespace: namespace, Name: "db", Store: "store", Path: "app/db", Property: "color"}.YAML(),
	)
	if err := bed.ApplyYAML(t.Context(), strings.NewReader(objects)); err != nil {
		t.Fatal(err)
	}
	waitSecret(t, namespace, "db", func(data map[string][]byte) bool { return string(data["color"]) == "blue" })

	client, err := dynamic.NewForConfig(bed.Config())
	if err != nil {
		t.Fatal(err)
	}
	externalSecrets := client.Resource(schema.GroupVersionResource{
		Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets",
	}).Namespace(namespace)
	force := func(value string) (synced string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"external-secrets.io/force-sync":%q}}}`, value)
		patched, err := externalSecrets.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return syncedVersion(t, patched)
	}
	waitMoved := func(before string) {
		t.Helper()
		testkit.Await(t, "the ExternalSecret has synced", func(ctx context.Context) bool {
			got, err := externalSecrets.Get(ctx, "db", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return syncedVersion(t, got) != before
		})
	}
	put("red")
	start = time.Now()
	waitMoved(force("v2"))
	t.Logf("forced sync: %v", time.Since(start))
	waitSecret(t, namespace, "db", func(data map[string][]byte) bool { return string(data["color"]) == "red" })

	operator.Kill()
	put("green")
	before := force("v3")
	startExternalSecrets(t, ExternalSecretsOptions{Concurrent: 2})
	waitMoved(before)
	waitSecret(t, namespace, "db", func(data map[string][]byte) bool { return string(data["color"]) == "green" })
}

func startExternalSecrets(t *testing.T, opts ExternalSecretsOptions) *process.Process {
	t.Helper()
	p, err := bed.StartExternalSecrets(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	p.StopAfter(t)
	return p
}

func syncedVersion(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	version, _, err := unstructured.NestedString(object.Object, "status", "syncedResourceVersion")
	if err != nil {
		t.Fatal(err)
	}
	return version
}
