package actuate

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAJobThatWasDeletedIsMadeAndItsShadowIsNot(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	jobs := c.client.BatchV1().Jobs("shop")
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "import-keyturn", UID: "s", ResourceVersion: c.next(),
			Annotations: map[string]string{"keyturn.dev/recreates": "import/u", "keyturn.dev/roll-on": "auto"},
		},
		Spec: batchv1.JobSpec{Suspend: new(true)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	options := c.options()
	options.RecreateJobs = true
	_, stop := c.start(options)
	defer stop()
	c.eventually("the Job is there", func() bool {
		job, err := jobs.Get(t.Context(), "import", metav1.GetOptions{})
		return err == nil && !*job.Spec.Suspend
	})
	c.eventually("the shadow is gone", func() bool {
		_, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
