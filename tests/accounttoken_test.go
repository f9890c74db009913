package tests

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestASecretWithTheTokenOfAServiceAccountRollsItsReaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: NAMESPACE}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: agent, namespace: NAMESPACE, annotations: {kubernetes.io/service-account.name: agent}}\n" +
		"type: kubernetes.io/service-account-token\n"
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(strings.ReplaceAll(account, "NAMESPACE", r.namespace))))
	r.eventually("the controller manager has written the token", func(ctx context.Context) bool {
		secret, err := r.client.CoreV1().Secrets(r.namespace).Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0
	})
	r.create(workload{name: "agent", on: "auto", read: readsAll(events.KindSecret, "agent")})
	r.placeFence()
	r.start()
	r.rolls("the Secret has one more key", once("statefulset/agent"), func() {
		r.set(events.KindSecret, "agent", "server", "https://other.example.com")
	})
}
