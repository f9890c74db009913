package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestTheRecordSaysWhatAWorkloadWaitsToBeRolledFor(t *testing.T) {
	change := RolledFor{Fingerprint: "k1:x", Version: "100", UID: "uid", Scope: "*"}
	record, err := formatRolled(map[string]RolledFor{"secret/db": Owed(change), "secret/gone": Owed(DeletedAfter(change)), "secret/had": change})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Annotations: map[string]string{annotationRolled: record, AnnotationRollOn: "secret/db, secret/gone"},
	}}, Reading{})
	got := make(map[string]bool)
	for _, source := range w.Owed() {
		if source.Namespace != "shop" || source.Kind != events.KindSecret {
			t.Errorf("it names %v", source)
		}
		got[source.Name] = w.Rolled[source.String()].OwesDeletion()
	}
	if diff := cmp.Diff(map[string]bool{"db": false, "gone": true}, got); diff != "" {
		t.Errorf("what it waits for, and whether that is a deletion (-want +got):\n%s", diff)
	}
	if owed := w.Rolled["secret/db"]; !owed.Differs(change) || owed.SameChange(change) || events.Newer(owed.Version, "1") {
		t.Errorf("%v is taken for the change, or for a later one", owed)
	}
	if w.Rolled["secret/gone"].IsDeleted() {
		t.Error("it is taken for rolled")
	}
}

func TestWhatAWorkloadDoesNotWantIsNotOwed(t *testing.T) {
	record := `{"secret/db":"k:owed@0/u","secret/other":"k:owed@0/u","secret/third":"k:owed@0/u"}`
	w, _ := Read(deployments, webDeployment("50", map[string]string{annotationRolled: record}), Reading{})
	if got := w.Owed(); len(got) != 0 {
		t.Errorf("a workload that wants nothing is asked about %v", got)
	}
}
