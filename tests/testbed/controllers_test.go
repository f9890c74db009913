package testbed

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestEachControllerHasAnAccountOfItsOwn(t *testing.T) {
	for _, account := range []string{"deployment-controller", "replicaset-controller"} {
		if _, err := bed.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Get(t.Context(), account, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestADaemonSetHasAPodOnTheNode(t *testing.T) {
	namespace := bed.Namespace(t)
	like := deployment("agent", 1)
	sets := bed.client.AppsV1().DaemonSets(namespace)
	set := &appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template}}
	if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the pod is available", func(ctx context.Context) bool {
		got, err := sets.Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && got.Status.NumberAvailable == 1
	})
}

func TestWhatIsDeletedLeavesNothing(t *testing.T) {
	namespace := bed.Namespace(t)
	created, err := bed.client.AppsV1().Deployments(namespace).Create(t.Context(), deployment("api", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, bed.client, created)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := bed.client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := bed.client.AppsV1().Deployments(namespace).Delete(t.Context(), "api", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the ReplicaSet and the pod are gone", func(ctx context.Context) bool {
		sets, err := bed.client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(sets.Items) > 0 {
			return false
		}
		pods, err := bed.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
	if err := bed.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the namespace is gone", func(ctx context.Context) bool {
		_, err := bed.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
