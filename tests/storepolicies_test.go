package tests

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestADeletionTakesNothingAwayAndWhatStaysAsItWasIsTold(t *testing.T) {
	t.Parallel()
	const reads = "dataFrom: [{extract: {key: shop/db}}]\n"
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.put("shop/db", "one")
	s.configMap("page", map[string]string{"page": "old {{ .password }}"})
	for name, spec := range map[string]string{
		"kept":      reads,
		"deleted":   reads + "  target: {deletionPolicy: Delete}\n",
		"templated": reads + "  target: {template: {templateFrom: [{configMap: {name: page, items: [{key: page, templateAs: Values}]}}]}}\n",
		"fixed":     reads + "  target: {immutable: true}\n",
		"created":   reads + "  refreshPolicy: CreatedOnce\n",
	} {
		s.apply("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: " + name + ", namespace: NAMESPACE}\n" +
			"spec:\n  refreshInterval: 1h\n  secretStoreRef: {kind: SecretStore, name: bao}\n  " + spec)
		s.awaitAnyContent(name, "one")
		s.create(workload{name: name, on: "auto", read: readsAll(events.KindSecret, name)})
	}
	s.placeFence()
	s.start()

	s.rolls("a new version", once("statefulset/kept", "statefulset/deleted", "statefulset/templated"), func() { s.put("shop/db", "two") })
	s.eventually("what stays as it was is told", func(ctx context.Context) bool {
		list, err := s.client.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=NotSynced"})
		if err != nil {
			return false
		}
		var told []string
		for i := range list.Items {
			told = append(told, list.Items[i].InvolvedObject.Name)
		}
		slices.Sort(told)
		return slices.Equal(told, []string{"created", "fixed"})
	})
	s.rolls("what the template names", once("statefulset/templated"), func() {
		s.configMap("page", map[string]string{"page": "new {{ .password }}"})
	})
	s.awaitAnyContent("templated", "new two")
	s.rollsNothing("a deletion by mistake", func() {
		testkit.Must(t, s.store.Client().KVv2("secret").Delete(t.Context(), "shop/db"))
		s.awaitVersion("shop/db", "deleted", "delete", 2)
	})
	if cause := s.causeOf("deleted"); !strings.HasPrefix(cause, "bao/root/secret/shop/db/2/") || strings.Contains(cause, "deleted") {
		t.Errorf("it was asked to sync for %s, want for the version alone", cause)
	}
	s.rollsNothing("its undeletion", func() {
		testkit.Must(t, s.store.Client().KVv2("secret").Undelete(t.Context(), "shop/db", []int{2}))
		s.eventually("it is synced again", func(context.Context) bool { return strings.Contains(s.causeOf("deleted"), "/2/undeleted/") })
	})
	for _, name := range []string{"kept", "deleted"} {
		s.awaitAnyContent(name, "two")
	}
}
