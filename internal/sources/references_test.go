package sources

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/tests/testkit"
)

// answers is a store that answers each known path of its API with a body, and all others with 404.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(a[r.URL.Path]))}
	if a[r.URL.Path] == "" {
		response.StatusCode = http.StatusNotFound
	}
	return response, nil
}

func TestTheReferencesOfOneNamespaceAreBounded(t *testing.T) {
	externalSecret := func(namespace, name string, paths ...string) *unstructured.Unstructured {
		entries := make([]string, 0, len(paths))
		for _, path := range paths {
			entries = append(entries, `{"secretKey":"a","remoteRef":{"key":"`+path+`"}}`)
		}
		return customOf(t, `{"apiVersion":"`+externalsecret.APIVersion+`","kind":"ExternalSecret","metadata":{"namespace":"`+namespace+`","name":"`+name+`"},
			"spec":{"secretStoreRef":{"name":"bao","kind":"ClusterSecretStore"},"data":[`+strings.Join(entries, ",")+`]}}`)
	}
	var many []string
	for i := range maxReferences {
		many = append(many, fmt.Sprintf("x/%d", i))
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets: "ExternalSecretList", externalsecret.SecretStores: "SecretStoreList",
		externalsecret.ClusterSecretStores: "ClusterSecretStoreList",
	},
		customOf(t, `{"apiVersion":"`+externalsecret.APIVersion+`","kind":"ClusterSecretStore","metadata":{"name":"bao"},
			"spec":{"provider":{"vault":{"server":"https://bao","path":"secret"}}}}`),
		externalSecret("aaa", "first", many...), externalSecret("aaa", "second", many...), externalSecret("shop", "db", "shop/db"))
	var log bytes.Buffer
	r := &references{client: client, namespaces: []string{metav1.NamespaceAll}, log: slog.New(slog.NewTextHandler(&log, nil))}
	want := func(paths, lines int) {
		t.Helper()
		listed, err := r.list(t.Context())
		testkit.Must(t, err)
		if len(listed) != paths || listed[paths-1].Path.Path != "shop/db" {
			t.Errorf("got %d references, the last of them %v, want %d with shop/db at the end", len(listed), listed[len(listed)-1], paths)
		}
		if got := strings.Count(log.String(), "references too many paths"); got != lines {
			t.Errorf("got %d warnings, want %d:\n%s", got, lines, log.String())
		}
	}
	want(maxReferences+1, 0) // each path counts once
	second := externalSecret("aaa", "second", "y/1", "y/2")
	_, err := client.Resource(externalsecret.ExternalSecrets).Namespace("aaa").Update(t.Context(), second, metav1.UpdateOptions{})
	testkit.Must(t, err)
	want(maxReferences+1, 1)
	want(maxReferences+1, 1)
}
