package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

func TestServersThatHaveEndedAreRevived(t *testing.T) {
	ended := []string{build.ControllerManager, build.Node}
	for _, name := range ended {
		bed.Server(name).Kill()
	}
	for _, want := range [][]string{ended, nil} {
		revived, err := bed.Revive()
		if diff := cmp.Diff(want, revived); diff != "" || err != nil {
			t.Fatalf("revived, %v (-want +got):\n%s", err, diff)
		}
	}
	namespace := bed.Namespace(t)
	created, err := bed.client.AppsV1().Deployments(namespace).Create(t.Context(), deployment("after", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, bed.client, created)
}
