package tests

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// limit gives the namespace a quota that is used up. The returned function takes it away. The control plane has no controller that counts what is
// there: the API server adds what it lets in.
func (r *rig) limit(used corev1.ResourceList) (lift func()) {
	r.Helper()
	quotas := r.client.CoreV1().ResourceQuotas(r.namespace)
	quota, err := quotas.Create(r.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "most"}, Spec: corev1.ResourceQuotaSpec{Hard: used},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	quota.Status = corev1.ResourceQuotaStatus{Hard: used, Used: used}
	if _, err := quotas.UpdateStatus(r.Context(), quota, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.eventually("one more Pod is refused", func(ctx context.Context) bool {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one-more"}, Spec: programs.PodTemplate(nil).Spec}
		_, err := r.client.CoreV1().Pods(r.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "exceeded quota")
	})
	return func() {
		r.Helper()
		testkit.Must(r, quotas.Delete(r.Context(), quota.Name, metav1.DeleteOptions{}))
	}
}

// lacksPods reports whether the controller of a Deployment is refused a pod.
func lacksPods(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "exceeded quota")
	})
}

// A quota refuses the Job of a CronJob to the actuator itself, and the new pods of a Deployment to their controller.
func TestWhatAQuotaRefusesIsDoneOnceWhenTheQuotaIsLifted(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	r := newJobsRig(t, programs.Options{ActuatorArgs: []string{"--jobs", "start", "--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.schedule("report", "db", false)
	web := []string{"web-a", "web-b", "web-c"}
	for _, name := range web {
		r.deploy(r.reading(name, "db", 1, nil))
	}
	r.placeFence()
	r.start()
	r.awaitRecords()
	before := r.tally()
	lift := r.limit(corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("3"), "count/jobs.batch": resource.MustParse("0"),
	})

	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the Job is refused", func(context.Context) bool { return strings.Contains(r.actuator.Output(), "exceeded quota") })
	for _, name := range web {
		r.eventually("the new pod of "+name+" is refused", func(context.Context) bool { return lacksPods(r.deployment(name)) })
	}

	lift()
	for _, name := range append(web, "report") {
		r.outcomeOf(name, events.VerbCompleted)
	}
	r.passFence()
	rolled := r.tally().since(before)
	for _, name := range web {
		if rolls := rolled["deployment/"+name]; rolls != 1 {
			t.Errorf("%s has rolled %d times, want once", name, rolls)
		}
	}
	if got := r.started("report"); len(got) != 1 {
		t.Errorf("%d Jobs were started, want one", len(got))
	}
}
