package tests

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestASecretWithTheTokenOfAServiceAccountRollsItsReaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	if _, err := r.client.CoreV1().ServiceAccounts(r.namespace).Create(r.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secrets := r.client.CoreV1().Secrets(r.namespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Annotations: map[string]string{corev1.ServiceAccountNameKey: "agent"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := secrets.Create(r.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the controller manager has written the token", func(ctx context.Context) bool {
		var err error
		secret, err = secrets.Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0
	})
	r.create(workload{name: "agent", on: "auto", read: readsAll(events.KindSecret, "agent")})
	r.placeFence()
	r.start()
	r.rolls("the Secret has one more key", once("statefulset/agent"), func() {
		secret.Data["server"] = []byte("https://other.example.com")
		if _, err := secrets.Update(r.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}
