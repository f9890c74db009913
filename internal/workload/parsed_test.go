package workload

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rolledDeployment returns a Deployment with a record, as it is after some writes.
func rolledDeployment() *appsv1.Deployment {
	record := formatRolled(map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "40", UID: "u"}})
	d := recordedBy("50", record, entryOf(FieldManager, ownsRolled))
	d.Generation, d.Spec.Template.Annotations = 3, map[string]string{annotationRevision: "r1"}
	return d
}

// That it is read as if all of it were parsed is shown for all kinds of writes by TestAnIndexThatReusesWhatItHasReadIsAsIfItHadReadEverything of
// inventory.
func TestWhatAWriteOfTheStatusLeavesIsParsedOnce(t *testing.T) {
	tests := []struct {
		name  string
		write func(*appsv1.Deployment)
		once  bool
	}{
		{
			name: "a write of the status", once: true,
			write: func(d *appsv1.Deployment) {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
				d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
					Time: new(metav1.NewTime(written)), FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`),
				})
			},
		},
		{name: "a label", once: true, write: func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "a"} }},
		{name: "an annotation", write: func(d *appsv1.Deployment) { d.Annotations[AnnotationRollOn] = "none" }},
		{name: "nothing in managedFields", write: func(d *appsv1.Deployment) { d.ManagedFields = nil }},
		{
			name: "only the status in managedFields",
			write: func(d *appsv1.Deployment) {
				d.ManagedFields[0] = metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Subresource: "status"}
			},
		},
		{name: "the pod template", write: func(d *appsv1.Deployment) { d.Generation, d.Spec.Template.Spec.Containers = 4, nil }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			deployment := rolledDeployment()
			earlier := readAs(t, deployments, deployment, Reading{})
			deployment = deployment.DeepCopy()
			deployment.ResourceVersion = "51"
			test.write(deployment)
			got, ok := ReadAfter(deployments, deployment, Reading{}, earlier)
			if want := readAs(t, deployments, deployment, Reading{}); !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("after another state it is read as\n%+v, want\n%+v", got, want)
			}
			if once := got.parsed == earlier.parsed; once != test.once {
				t.Errorf("it was parsed once: %t, want %t", once, test.once)
			}
		})
	}
}

func TestOnlyWhatCountsItsChangesIsParsedOnce(t *testing.T) {
	deployment := rolledDeployment()
	for name, object := range everyKind(deployment.ObjectMeta, deployment.Spec.Template) {
		k, _ := BuiltIn().Named(name)
		earlier := readAs(t, k, object, Reading{})
		next, _ := ReadAfter(k, object, Reading{}, earlier)
		if once, want := next.parsed != nil && next.parsed == earlier.parsed, name != "cronjob"; once != want {
			t.Errorf("a %s is parsed once: %t, want %t", name, once, want)
		}
	}
	deployment.Generation = 0
	earlier := readAs(t, deployments, deployment, Reading{})
	if next, _ := ReadAfter(deployments, deployment, Reading{}, earlier); next.parsed == earlier.parsed {
		t.Error("without a generation, it is parsed once")
	}
}
