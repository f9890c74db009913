//go:build !race

package actuate_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// A patch of another leader arrives just before that of this one, which the watch has not shown.
func TestAWorkloadThatAnotherLeaderRolledIsDecidedAgain(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.stall("web")
		s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			if _, err := s.apply(request); err != nil {
				return true, nil, err
			}
			answer, err := s.apply(request)
			return true, answer, err
		})
		s.rotate("two", "web") // by the other leader
		record := s.annotation("web", annotationRecord)
		s.pass(time.Minute)
		s.wantTold("web started already-rolled")
		s.finish("web")
		s.pass(time.Hour)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
		if got := s.annotation("web", annotationRecord); got != record {
			s.Errorf("the record became %s, want that of the other leader, %s", got, record)
		}
	})
}

// Another leader writes a later record just before the correction arrives.
func TestACorrectionOfAnEarlierRecordChangesNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		record := fmt.Sprintf(`{"secret/db":"k0a1b2c3d:0000000000000000000000000000000c@%s/%s"}`, s.nextVersion(), s.of("secret/db").published.UID)
		var written atomic.Bool
		s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			if bytes.Contains(request.Patch, []byte("keyturn.dev~1reverted")) && written.CompareAndSwap(false, true) {
				s.writeAs(workload.FieldManager, "web", annotated(annotationRecord, record))
			}
			return false, nil, nil
		})
		s.edit("web", unrolled)
		s.pass(time.Hour)
		if !written.Load() {
			s.Fatal("nothing was corrected")
		}
		if got := s.annotation("web", annotationRecord); got != record {
			s.Errorf("the record is %s, want %s", got, record)
		}
		s.wantRolls()
	})
}
