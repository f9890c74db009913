package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// rolledDeployment is a Deployment that was rolled for a change of the one Secret that its pods read.
func rolledDeployment() *appsv1.Deployment {
	written := metav1.NewTime(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "6f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11", ResourceVersion: "4720", Generation: 2,
			CreationTimestamp: written, Annotations: map[string]string{
				AnnotationRollOn: "auto",
				annotationRolled: `{"secret/db":"k0a1b2c3d:00000000000000000000000000000001@4711/5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11#*"}`,
				annotationRolls:  "1 since 2026-03-14T15:09:26Z",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kubectl", Time: &written},
				{
					Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(ownsRecord),
				},
				{Manager: "kube-controller-manager", Time: &written, Subresource: "status"},
			},
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationRevision: "2f6e9a530d3c1b0f", events.AnnotationCause: "secret/db (password)"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web", EnvFrom: []corev1.EnvFromSource{{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
			}}}}},
		}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

// BenchmarkRead reads a Deployment, as happens for each event of a watch. A rollout causes about five events.
func BenchmarkRead(b *testing.B) {
	d := rolledDeployment()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Read(deployments, d, Reading{MaxRollsPerHour: 30}); !ok {
			b.Fatal("it is no Deployment")
		}
	}
}

// BenchmarkPatch creates the patch of a roll.
func BenchmarkPatch(b *testing.B) {
	w, _ := Read(deployments, rolledDeployment(), Reading{MaxRollsPerHour: 30})
	source := SourceNamed("secret", "shop", "db")
	at := time.Date(2026, 3, 14, 16, 0, 0, 0, time.UTC)
	write := Write{
		Rolled:  map[string]RolledFor{source.String(): {Fingerprint: "k0a1b2c3d:00000000000000000000000000000002", Version: "4800", UID: "uid", Scope: "*"}},
		Changes: []Change{{Source: source, At: at, Written: at}}, Rolls: true, RolledAt: at, Cause: "secret/db (password)",
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := deployments.Patch(w, write); err != nil {
			b.Fatal(err)
		}
	}
}
