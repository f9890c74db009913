package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// startedJob is a Job with a record, of the CronJob with the given UID, created at the given second.
func startedJob(uid types.UID, record, revision string, second int64) batchv1.Job {
	job := jobOf(reportCronJob(), "s")
	job.OwnerReferences[0].UID, job.CreationTimestamp = uid, metav1.NewTime(time.Unix(second, 0))
	job.Annotations[annotationRolled], job.Annotations[annotationRevision] = record, revision
	return *job
}

func TestJobsSayWhatTheyWereStartedFor(t *testing.T) {
	at := func(version string) string { return fp("a") + "@" + version + "/u" }
	byHand := startedJob("u", "", "", 9)
	orphan := startedJob("u", `{"secret/db":"`+at("9")+`"}`, "r9", 9)
	orphan.OwnerReferences = nil
	ofAnother := startedJob("u", `{"secret/db":"`+at("9")+`"}`, "r9", 9)
	ofAnother.OwnerReferences[0].Kind = "Workflow"
	pages := [][]batchv1.Job{
		{startedJob("u", `{"secret/db":"`+at("7")+`","secret/other":"`+at(NoVersion)+`"}`, "r2", 2), byHand, startedJob("other", `{"secret/db":"`+at("3")+`"}`, "r", 1)},
		{startedJob("u", `{"secret/db":"`+at("5")+`","secret/other":"`+at("4")+`"}`, "r1", 1), orphan, ofAnother},
	}
	client := fake.NewClientset()
	client.PrependReactor("list", "jobs", func(k8stesting.Action) (bool, runtime.Object, error) {
		page := &batchv1.JobList{Items: pages[0]}
		if pages = pages[1:]; len(pages) > 0 {
			page.Continue = "more"
		}
		return true, page, nil
	})
	found, err := ReadStarts(t.Context(), Clients{Typed: client}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Errorf("got %d CronJobs, want 2", len(found))
	}
	got := found["u"]
	want := map[string]RolledFor{
		"secret/db": {Fingerprint: fp("a"), Version: "7", UID: "u"}, "secret/other": {Fingerprint: fp("a"), Version: "4", UID: "u"},
	}
	if diff := cmp.Diff(want, got.Rolled); diff != "" || got.Revision != "r2" {
		t.Errorf("revision %s, record (-want +got):\n%s", got.Revision, diff)
	}
}
