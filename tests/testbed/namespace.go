package testbed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if err := cp.waitServiceAccount(t.Context(), ns.Name); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}
