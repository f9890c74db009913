package tests

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const recordAnnotation = "keyturn.dev/rolled"

// awaitRecords waits until each Deployment in the namespace has a record, as they have a few seconds after the actuator has begun. The rigs elect no
// leader, and then what changes while no actuator runs is found by the records alone.
func (r *rig) awaitRecords() {
	r.Helper()
	r.eventually("each Deployment has a record", func(ctx context.Context) bool {
		list, err := r.client.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, deployment := range list.Items {
			if !strings.Contains(deployment.Annotations[recordAnnotation], "/") {
				return false
			}
		}
		return true
	})
}
