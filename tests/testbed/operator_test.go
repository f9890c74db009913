package testbed

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// waitSecret waits until a Secret has the wanted data.
func waitSecret(t *testing.T, namespace, name string, wanted func(data map[string][]byte) bool) *corev1.Secret {
	t.Helper()
	var secret *corev1.Secret
	testkit.Await(t, "secret "+name+" has the wanted data", func(ctx context.Context) bool {
		var err error
		secret, err = bed.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil && wanted(secret.Data)
	})
	return secret
}
