package tests

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// storeForms are stores that name the same place in different ways, and one that names another mount.
const storeForms = `
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: no-path, namespace: NAMESPACE}
spec: {provider: {vault: {server: ADDRESS, version: v2, auth: {tokenSecretRef: {name: store-token, key: token}}}}}
---
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: team, namespace: NAMESPACE}
spec: {provider: {vault: {server: ADDRESS, path: team, version: v2, auth: {tokenSecretRef: {name: store-token, key: token}}}}}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: NAMESPACE}
spec:
  conditions: [{namespaces: [NAMESPACE]}]
  provider: {vault: {server: ADDRESS, path: secret, version: v2, auth: {tokenSecretRef: {name: store-token, namespace: NAMESPACE, key: token}}}}
---
apiVersion: external-secrets.io/v1
kind: ClusterExternalSecret
metadata: {name: NAMESPACE}
spec:
  externalSecretName: fanned-out
  namespaceSelectors: [{matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}]
  externalSecretSpec:
    refreshInterval: 1h
    secretStoreRef: {kind: SecretStore, name: bao}
    data: [{secretKey: password, remoteRef: {key: shop/db, property: password}}]
`

func TestWhatReadsAPathIsReadAnewAndRolledOnceHoweverItNamesIt(t *testing.T) {
	t.Parallel()
	const (
		bao     = "secretStoreRef: {kind: SecretStore, name: bao}"
		noPath  = "secretStoreRef: {kind: SecretStore, name: no-path}"
		cluster = "secretStoreRef: {kind: ClusterSecretStore, name: NAMESPACE}"
		team    = "secretStoreRef: {kind: SecretStore, name: team}"
	)
	tests := []struct {
		name  string
		spec  string
		reads bool // secret/shop/db, whatever its version is
	}{
		{"plain", bao + "\n  data: [{secretKey: password, remoteRef: {key: shop/db, property: password}}]", true},
		{"with-mount", bao + "\n  data: [{secretKey: password, remoteRef: {key: secret/shop/db, property: password}}]", true},
		{"no-path", noPath + "\n  data: [{secretKey: password, remoteRef: {key: secret/shop/db, property: password}}]", true},
		{"no-path-api", noPath + "\n  data: [{secretKey: password, remoteRef: {key: secret/data/shop/db, property: password}}]", true},
		{"extract", bao + "\n  dataFrom: [{extract: {key: shop/db}}]", true},
		{"find", bao + "\n  dataFrom: [{find: {name: {regexp: '^shop/d.$'}}}]", true},
		{"find-below", bao + "\n  dataFrom: [{find: {path: shop, name: {regexp: db}}}]", true},
		{"cluster", cluster + "\n  data: [{secretKey: password, remoteRef: {key: shop/db, property: password}}]", true},
		{"template", bao + "\n  target: {template: {data: {password: '{{ .password }}!'}}}\n  data: [{secretKey: password, remoteRef: {key: shop/db, property: password}}]", true},
		{"find-elsewhere", bao + "\n  dataFrom: [{find: {path: else, name: {regexp: db}}}]", false},
		{"pinned", bao + "\n  data: [{secretKey: password, remoteRef: {key: shop/db, property: password, version: '1'}}]", false},
		{"other-mount", team + "\n  data: [{secretKey: password, remoteRef: {key: shop/db, property: password}}]", false},
	}
	s := newStoreRig(t, byHTTP, programs.Options{})
	testkit.Must(t, s.store.MountKV(t.Context(), "team", 2))
	s.putIn("team", "shop/db", "one")
	s.put("shop/db", "one")
	s.put("else/db", "one")
	s.applyForms()
	names := []string{"fanned-out"}
	want := once("statefulset/fanned-out")
	for _, tt := range tests {
		s.apply("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: " + tt.name +
			", namespace: NAMESPACE}\nspec:\n  refreshInterval: 1h\n  " + tt.spec + "\n")
		names = append(names, tt.name)
		if tt.reads {
			want["statefulset/"+tt.name] = 1
		}
	}
	// What cannot be read is to harm nobody.
	s.apply("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: unreadable, namespace: NAMESPACE}\n" +
		"spec:\n  refreshInterval: 1h\n  " + bao + "\n  dataFrom: [{find: {name: {regexp: '('}}}]\n")
	for _, name := range names {
		s.awaitAnyContent(name, "one")
		s.create(workload{name: name, on: "auto", read: readsAll(events.KindSecret, name)})
		// Of the same name as the Secret, and never changed.
		s.configMap(name, map[string]string{"password": "one"})
		s.create(workload{name: "configured-by-" + name, on: "auto", read: readsAll(events.KindConfigMap, name)})
	}
	s.placeFence()
	s.start()

	s.rolls("a write to the path", want, func() { s.put("shop/db", "two") })
	for name := range want {
		name = strings.TrimPrefix(name, "statefulset/")
		s.awaitAnyContent(name, "two")
		wantCause := "by externalsecret/" + name + " for bao/root/secret/shop/db/2/"
		if cause := s.templateCause(name); !strings.Contains(cause, wantCause) {
			t.Errorf("cause of %s: got %q, want one that contains %q", name, cause, wantCause)
		}
	}
	if secret, err := s.client.CoreV1().Secrets(s.namespace).Get(t.Context(), "template", metav1.GetOptions{}); err != nil ||
		secret.Annotations["keyturn.dev/cause"] != "" {
		t.Errorf("the Secret of a template: %v, annotations %v, want none of ours: the cause was to be found without them", err, secret.Annotations)
	}
	s.rolls("a write to the same path of another mount", once("statefulset/other-mount"), func() { s.putIn("team", "shop/db", "two") })
	for _, name := range []string{"unreadable", "find-elsewhere", "pinned"} {
		if cause := s.causeOf(name); cause != "" {
			t.Errorf("%s was asked to sync for %s, and does not read it", name, cause)
		}
	}
	if log := s.actuator.Output(); !strings.Contains(log, `"externalsecret":"unreadable"`) {
		t.Error("the actuator does not say that the regular expression cannot be read")
	}
}

// applyForms applies the stores, and removes those that are in no namespace when the test ends.
func (s *storeRig) applyForms() {
	s.Helper()
	s.apply(storeForms)
	s.Cleanup(func() {
		for _, resource := range []string{"clusterexternalsecrets", "clustersecretstores"} {
			gvr := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: resource}
			err := s.custom.Resource(gvr).Delete(context.WithoutCancel(s.Context()), s.namespace, metav1.DeleteOptions{})
			if err != nil {
				s.Error(err)
			}
		}
	})
}

// putIn writes a secret in a mount.
func (s *storeRig) putIn(mount, path, value string) {
	s.Helper()
	_, err := s.store.Client().KVv2(mount).Put(s.Context(), path, map[string]any{"password": value})
	testkit.Must(s, err)
}

// awaitAnyContent waits until a Secret has a text somewhere.
func (s *storeRig) awaitAnyContent(secret, text string) {
	s.Helper()
	s.eventually("the Secret "+secret+" holds "+text, func(ctx context.Context) bool {
		got, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return false
		}
		var values []string
		for _, value := range got.Data {
			values = append(values, string(value))
		}
		return slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, text) })
	})
}
