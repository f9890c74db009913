package templates

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestOnlyWritesOfTheTemplateAreCounted(t *testing.T) {
	c := &Counter{seen: make(map[string]state), gone: make(map[string]uint64)}
	deployment := func(version, note, template string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: version, Annotations: map[string]string{"note": note}}}
		d.Spec.Template.Annotations = map[string]string{"a": template}
		return d
	}
	want := func(key string, writes int64, version uint64) {
		t.Helper()
		if got := c.seen[key]; got.writes != writes || got.version != version {
			t.Errorf("%s: got %d writes up to %d, want %d up to %d", key, got.writes, got.version, writes, version)
		}
	}
	c.see(deployment("1", "one", "one"))
	want("deployment/web", 1, 1)
	c.see(deployment("2", "two", "one"))
	want("deployment/web", 1, 2)
	c.see(deployment("3", "two", "two"))
	c.see(deployment("4", "two", "one"))
	want("deployment/web", 3, 4)
	if got := c.Seen()["deployment/web"]; got != 3 {
		t.Errorf("what was seen: got %d writes, want 3", got)
	}
	for i, version := range []string{"5", "6"} {
		job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: version}}
		job.Spec.JobTemplate.Spec.Template.Labels = map[string]string{"version": version}
		c.see(job)
		want("cronjob/web", int64(i+1), uint64(i+5))
	}
	c.forget(cache.DeletedFinalStateUnknown{Obj: deployment("7", "two", "one")})
	c.see(deployment("8", "one", "one"))
	want("deployment/web", 1, 8)
}

func TestWhatIsDeletedAfterItWasListedIsNotWaitedFor(t *testing.T) {
	web := func(version string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: version}}
	}
	c := &Counter{client: fake.NewClientset(web("7")), namespace: "shop", seen: make(map[string]state), gone: make(map[string]uint64)}
	c.see(web("6"))
	c.forget(web("8"))
	if writes, err := c.Writes(t.Context()); err != nil || len(writes) > 0 {
		t.Errorf("got %v, %v, want nothing", writes, err)
	}
}
