//go:build !race

package actuate_test

import (
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

// goneLong is longer than it takes until a kind that is not served counts as gone, or as served again.
const goneLong = 3 * time.Minute

// servedRollouts says whether the API server serves Rollouts.
type servedRollouts struct {
	mu      sync.Mutex
	absent  bool
	watches []watch.Interface
}

// mayBeUnserved lets the API server stop to serve Rollouts. Call it after serveRollout.
func (s *scene) mayBeUnserved() *servedRollouts {
	s.Helper()
	client, ok := s.options.Dynamic.(*dynamicfake.FakeDynamicClient)
	if !ok {
		s.Fatal("no custom resources are served")
	}
	r, unknown := &servedRollouts{}, apierrors.NewNotFound(rolloutResource.GroupResource(), "")
	client.PrependReactor("list", "rollouts", func(k8stesting.Action) (bool, runtime.Object, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.absent, nil, unknown
	})
	client.PrependWatchReactor("rollouts", func(action k8stesting.Action) (bool, watch.Interface, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		request, ok := action.(k8stesting.WatchActionImpl)
		if r.absent || !ok {
			return true, nil, unknown
		}
		watched, err := client.Tracker().Watch(rolloutResource, request.GetNamespace(), request.ListOptions)
		if err == nil {
			r.watches = append(r.watches, watched)
		}
		return true, watched, err
	})
	return r
}

// serve lets the API server serve Rollouts from now on, or not.
func (r *servedRollouts) serve(served bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.absent = !served
	for _, watched := range r.watches {
		watched.Stop()
	}
	r.watches = nil
}

func TestWhatIsPendingOutlivesThatTheKindIsNotServed(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		change := s.serveRollout(func(*unstructured.Unstructured) {})
		rollouts := s.mayBeUnserved()
		hold := func(text string) {
			change(func(object *unstructured.Unstructured) {
				annotations := object.GetAnnotations()
				delete(annotations, events.AnnotationHold)
				if text != "" {
					annotations[events.AnnotationHold] = text
				}
				object.SetAnnotations(annotations)
			})
		}
		s.begin("secret/db")
		hold("tofu apply")
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantTold("rollout/web held on-hold")
		rollouts.serve(false)
		s.pass(goneLong)
		s.wantTold("rollout/web held kind-not-served")
		if got, _ := seen.measurements().value("keyturn.workloads.held", "reason", "kind-not-served"); got != 1 {
			s.Errorf("%d workloads are held for that, want one", got)
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantTold()
		rollouts.serve(true)
		s.pass(goneLong)
		s.told() // That it is on hold.
		hold("")
		s.settle()
		s.wantTold("rollout/web started content-changed")
		s.wantRolledForLast("rollout/web", "secret/db")
	})
}

// It makes no difference which leader took an event meanwhile, and acked it without a workload.
func TestWhatChangesWhileAKindIsNotServedIsNotMissed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		leader func(s *scene)
	}{
		{"with the same leader", func(*scene) {}},
		{"with another leader", func(s *scene) { s.restart() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.serveRollout(func(*unstructured.Unstructured) {})
				rollouts := s.mayBeUnserved()
				s.begin("secret/db")
				rollouts.serve(false)
				s.pass(goneLong)
				rollouts.serve(true)
				s.pass(goneLong)
				s.wantTold() // Nothing has changed.
				rollouts.serve(false)
				s.pass(goneLong)
				s.set("secret/db", "password", "two")
				s.pass(time.Minute)
				tt.leader(s)
				s.pass(time.Minute)
				s.wantTold()
				rollouts.serve(true)
				s.pass(goneLong)
				s.wantTold("rollout/web started content-changed")
				s.wantRolledForLast("rollout/web", "secret/db")
			})
		})
	}
}

// When a kind is installed for the first time, its workloads are seen for the first time, too, and have no record.
func TestOfAKindThatIsInstalledNothingRollsForWhatChangedBefore(t *testing.T) {
	for _, tt := range []struct {
		name string
		// written is when the workload was last written, zero if nobody knows. The source changes after a minute.
		written time.Time
	}{
		{"it wants the source since the change", midnight.Add(time.Hour)},
		{"nobody knows since when it wants the source", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.serveRollout(func(object *unstructured.Unstructured) {
					if !tt.written.IsZero() {
						object.SetManagedFields([]metav1.ManagedFieldsEntry{{
							Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: tt.written},
						}})
					}
				})
				rollouts := s.mayBeUnserved()
				rollouts.serve(false)
				s.begin("secret/db")
				s.set("secret/db", "password", "two")
				s.pass(time.Minute)
				rollouts.serve(true)
				s.pass(goneLong)
				s.wantTold()
				s.set("secret/db", "password", "three")
				s.settle()
				s.wantTold("rollout/web started content-changed")
			})
		})
	}
}
