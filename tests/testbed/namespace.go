package testbed

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Namespace creates a namespace with a unique name, waits until pods can be created in it, and returns its name. It is not
// deleted, because that would keep the controllers busy during the next test. It ends with the control plane.
func (cp *ControlPlane) Namespace(t testing.TB) string {
	t.Helper()
	ns, err := cp.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	if cp.opts.WithoutControllers {
		return ns.Name
	}
	testkit.Must(t, cp.waitServiceAccount(t.Context(), ns.Name))
	return ns.Name
}

// waitServiceAccount waits for the account that a controller creates in every new namespace. Until it exists, the API server
// refuses pods in the namespace.
func (cp *ControlPlane) waitServiceAccount(ctx context.Context, namespace string) error {
	exists := func(ctx context.Context) (bool, error) {
		_, err := cp.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, process.StartTimeout, true, exists)
	if err != nil {
		return fmt.Errorf("wait for the default service account of %s: %w", namespace, err)
	}
	return nil
}
