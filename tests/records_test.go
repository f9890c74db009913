package tests

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const recordAnnotation = "keyturn.dev/rolled"

// awaitRecords waits until each Deployment in the namespace has a record, as they have a few seconds after the actuator has begun. The rigs elect no
// leader, and then what changes while no actuator runs is found by the records alone.
func (r *rig) awaitRecords() {
	r.Helper()
	r.eventually("each Deployment has a record", func(ctx context.Context) bool {
		list, err := r.client.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
		lacks := func(d appsv1.Deployment) bool { return !strings.Contains(d.Annotations[recordAnnotation], "/") }
		return err == nil && !slices.ContainsFunc(list.Items, lacks)
	})
}
