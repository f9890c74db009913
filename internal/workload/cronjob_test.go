package workload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// reportCronJob is a CronJob after a roll.
func reportCronJob() *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "report", Namespace: "shop", UID: "u", ResourceVersion: "7",
			Annotations: map[string]string{annotationRevision: "r1", events.AnnotationCause: "secret/db", "team": "shop"},
		},
		Spec: batchv1.CronJobSpec{
			Suspend: new(false),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "report"}, Annotations: map[string]string{"note": "nightly"}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{events.AnnotationTraceparent: "old"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
				}},
			},
		},
	}
}

func TestAJobIsStartedAsByHand(t *testing.T) {
	cronJob := reportCronJob()
	before := cronJob.DeepCopy()
	job := jobOf(cronJob, "s")
	want := metav1.ObjectMeta{
		Name: job.Name, Namespace: "shop", Labels: map[string]string{"app": "report"},
		Annotations:     map[string]string{"note": "nightly", annotationInstantiate: "manual", annotationRevision: "r1", events.AnnotationCause: "secret/db"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "report", UID: "u", Controller: new(true)}},
	}
	testkit.WantEqual(t, "metadata", want, job.ObjectMeta)
	ofPods := map[string]string{annotationRevision: "r1", events.AnnotationCause: "secret/db"}
	testkit.WantEqual(t, "annotations of the pods", ofPods, job.Spec.Template.Annotations)
	if diff := cmp.Diff(before, cronJob); diff != "" {
		t.Errorf("the CronJob was changed (-before +after):\n%s", diff)
	}
}

func TestNoJobOfACronJobThatIsBeingDeletedIsStarted(t *testing.T) {
	now, cronJob := metav1.Now(), waitingCronJob()
	cronJob.Spec.Suspend = new(true)
	if w, ok := Read(StartedCronJob(), cronJob, Reading{}); !ok || w.OptIn.Empty() || !w.Suspended {
		t.Fatalf("read %t, want that it asks for something, and is suspended", ok)
	}
	cronJob.DeletionTimestamp = &now
	if w, ok := Read(StartedCronJob(), cronJob, Reading{}); !ok || !w.Deaf || !w.OptIn.Empty() {
		t.Errorf("read %t, want it left alone", ok)
	}
}

func TestAJobIsStartedOnceThoughItsRecordIsRefused(t *testing.T) {
	resource := schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	denied := apierrors.NewForbidden(resource, "report", errors.New("admission webhook denied the request"))
	tests := []struct {
		name    string
		refusal error
		// times is how often the write is refused, and recorded says that it succeeds in the end.
		times    int
		recorded bool
	}{
		{"by admission", denied, 1, false},
		{"for a while", apierrors.NewInternalError(errors.New("failed calling webhook")), 2, true},
		{"for longer than a patch may take", apierrors.NewInternalError(errors.New("failed calling webhook")), 100, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(waitingCronJob())
				refused := 0
				client.PrependReactor("patch", "cronjobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
					sent, _ := action.(k8stesting.PatchActionImpl)
					if len(sent.PatchOptions.DryRun) == 0 && refused < test.times {
						refused++
						return true, nil, test.refusal
					}
					after := &batchv1.CronJob{}
					return true, after, Patch{Body: sent.Patch}.apply(waitingCronJob(), after)
				})
				ctx, cancel := context.WithTimeout(t.Context(), kube.PatchTimeout)
				defer cancel()
				after, err := sendTo(ctx, t, StartedCronJob(), waitingCronJob(), Clients{Typed: client}, dbChange("5"))
				if recorded := err == nil; recorded != test.recorded || !recorded && !errors.Is(err, ErrUnrecorded) {
					t.Fatalf("got %v, want it recorded: %t", err, test.recorded)
				}
				if after.Rolled["secret/db"].Version != "5" || after.Revision == "" {
					t.Errorf("got the record %v, want the CronJob as it would be", after.Rolled)
				}
				if jobs := jobsOf(t, client); len(jobs) != 1 {
					t.Errorf("got %d Jobs, want one", len(jobs))
				}
			})
		})
	}
}

func TestNoJobIsStartedUnderTheNameOfAnother(t *testing.T) {
	client := fake.NewClientset(waitingCronJob())
	withoutRight(client, "patch", "cronjobs")
	clients := Clients{Typed: client, Unrecorded: true}
	if _, err := sendTo(t.Context(), t, StartedCronJob(), waitingCronJob(), clients, dbChange("5")); !errors.Is(err, ErrUnrecorded) {
		t.Fatal(err)
	}
	other := jobsOf(t, client)[0]
	other.OwnerReferences = nil
	testkit.Must(t, client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), &other, "shop"))
	_, err := sendTo(t.Context(), t, StartedCronJob(), waitingCronJob(), clients, dbChange("5"))
	if !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "delete job "+other.Name) {
		t.Errorf("got %v, want %v", err, ErrNameTaken)
	}
}
