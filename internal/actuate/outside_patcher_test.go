//go:build !race

package actuate_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"
)

func TestWorkloadsAreChangedByJSONPatchesOfOneFieldManager(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.rotate("two", "web")
		patches := s.requests("patch", "deployments")
		if len(patches) < 2 {
			s.Fatalf("there are %d patches, want one of the record and a roll", len(patches))
		}
		for _, action := range patches {
			request, ok := action.(k8stesting.PatchActionImpl)
			if !ok || request.PatchType != types.JSONPatchType || request.PatchOptions.FieldManager != "keyturn" {
				s.Errorf("sent was %+v, want a JSON patch of the field manager keyturn", action)
			}
		}
	})
}

// The watch is late: the workload is gone, and the actuator does not know.
func TestAPatchOfAWorkloadThatIsGoneIsNotDenied(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", apierrors.NewNotFound(appsv1.Resource("deployments"), "web"))
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Minute)
		s.wantTold()
		s.delete("web")
		s.pass(2 * time.Minute)
		s.wantTold("web skipped workload-gone")
	})
}
