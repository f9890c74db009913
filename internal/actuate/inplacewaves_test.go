package actuate

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// newFollowedBed returns a tellBed with another workload, which is in a wave, reads db, and comes after the one whose pods reload.
func newFollowedBed(t *testing.T, wave string, set func(*Options)) (b *tellBed, after *workload.Workload, rolled *int) {
	t.Helper()
	deployment := mountingDeployment("db", map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": wave})
	deployment.Name, deployment.UID = "worker", "uid-worker"
	after, ok := workload.Read(deployments, deployment, workload.Reading{})
	if !ok {
		t.Fatal("it is not read")
	}
	b = newTellBed(t, set, nil)
	rolled = new(int)
	b.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, isPatch := action.(k8stesting.PatchAction)
		if !isPatch || patch.GetName() != deployment.Name {
			return false, nil, nil
		}
		*rolled++
		answer, err := patched(deployment, action)
		return true, answer, err
	})
	b.dispatcher.index.Listed(after, "")
	return b, after, rolled
}

// changeBoth makes db change now for both workloads.
func (b *tellBed) changeBoth(after *workload.Workload) {
	change := changeOf(nil)
	change.Time = time.Now()
	for _, w := range []*workload.Workload{after, b.w} {
		b.debounce.pend(w, change)
		b.debounce.release(b.debounce.byKey[w.Key()], time.Now())
	}
}

func TestWhoComesAfterAReloadInPlaceGoesOnceThePodsHaveAnswered(t *testing.T) {
	for _, tt := range []struct {
		name, wave string
		set        func(*Options)
	}{
		{"in a higher wave", "1", func(*Options) {}},
		{"after the canary", "0", func(o *Options) { o.Canary = true }},
		{"after the canary, and in a higher wave", "1", func(o *Options) { o.Canary = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, after, rolled := newFollowedBed(t, tt.wave, tt.set)
				b.answer.Store(http.StatusInternalServerError)
				b.changeBoth(after)
				b.act()
				for range 2 * time.Minute / overdueCheck {
					<-time.After(overdueCheck)
					b.rollouts.reviewOverdue(b.Context())
					b.dispatcher.dispatch(b.Context())
				}
				if b.patcher.idle() || *rolled > 0 {
					t.Fatalf("while pods are asked to reload, the next has %d patches: %s", *rolled, b.said())
				}
				b.answer.Store(http.StatusOK)
				b.completion.finish(b.Context(), <-b.patcher.results)
				if len(b.patches) != 1 || b.patches[0] != "" {
					t.Fatalf("the patches have the revisions %q, want one that only records: %s", b.patches, b.said())
				}
				b.act()
				if *rolled != 1 {
					t.Errorf("the next has %d patches after the pods have answered: %s", *rolled, b.said())
				}
				if got := b.said(); !strings.Contains(got, "completed reloaded-in-place: ") {
					t.Errorf("it says\n%s", got)
				}
			})
		})
	}
}
