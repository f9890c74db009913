package testbed

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitSecret waits until a Secret has the wanted data.
func waitSecret(t *testing.T, namespace, name string, wanted func(data map[string][]byte) bool) *corev1.Secret {
	t.Helper()
	var secret *corev1.Secret
	poll(t, func(ctx context.Context) (bool, error) {
		var err error
		secret, err = bed.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && wanted(secret.Data), err
	})
	return secret
}
