package actuate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// denial returns the answer to a patch that admission denies.
func denial() error {
	return apierrors.NewForbidden(deploymentResource, "web", errors.New("admission webhook denied the request"))
}

// refusals gives the patches of a workload the same answer several times, and returns how many were given up.
func (b *revertBed) refusals(answer error, times int) int {
	b.Helper()
	b.answers = answer
	for range times {
		b.now = b.now.Add(time.Minute) // longer than any delay, with the minute of act
		b.act()
	}
	given := 0
	for _, o := range b.outcomes() {
		if o.Verb == events.VerbFailed && o.Reason == events.ReasonPatchDenied {
			given++
		}
	}
	return given
}

func TestOnlyDenialsCountTowardsGivingUp(t *testing.T) {
	tests := []struct {
		name   string
		denial error
	}{
		{"by admission", denial()},
		{"because another Job has the name that is needed", fmt.Errorf("%w: delete job import-keyturn", workload.ErrNameTaken)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRevertBed(t)
			b.answers = errors.New("etcdserver: request timed out")
			b.change()
			if given := b.refusals(b.answers, 2*kube.MaxDenials); given != 0 {
				t.Fatalf("%d were given up without a denial", given)
			}
			if given := b.refusals(test.denial, kube.MaxDenials-1); given != 0 {
				t.Errorf("it was given up after %d denials, want after %d", kube.MaxDenials-1, kube.MaxDenials)
			}
			if given := b.refusals(test.denial, 1); given != 1 {
				t.Errorf("it was not given up after %d denials", kube.MaxDenials)
			}
		})
	}
}

func TestDenialsAreCountedForOneContent(t *testing.T) {
	b := newRevertBed(t)
	b.answers = denial()
	b.change()
	if given := b.refusals(b.answers, kube.MaxDenials-2); given != 0 {
		t.Fatal("it was given up too early")
	}
	next := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("c") })
	event := eventOf(next)
	event.open = 1
	b.intake.consider(t.Context(), event, b.intake.index.Get(b.read().Key()), nil)
	if given := b.refusals(denial(), kube.MaxDenials-1); given != 0 {
		t.Error("the denials of an earlier content count")
	}
	if given := b.refusals(denial(), 1); given != 1 {
		t.Error("it was not given up")
	}
}

func TestDenialsOfACorrectionAreCountedApart(t *testing.T) {
	b := newRevertBed(t)
	b.change()
	b.revert()
	b.refusals(errors.New("etcdserver: request timed out"), 2*kube.MaxDenials)
	b.refusals(denial(), kube.MaxDenials-1)
	if len(b.rollouts.reverts.open) != 1 {
		t.Fatal("the correction was given up too early")
	}
	b.refusals(denial(), 1)
	if len(b.rollouts.reverts.open) != 0 {
		t.Error("the correction was not given up")
	}
}

// The watch is late for moments after another leader has written the record, but not for half a minute.
func TestAPatchThatIsNeverAppliedIsAFailedOneInTheEnd(t *testing.T) {
	kinds, reading := targetsOf(t)
	lever, _ := kinds.Named("lever")
	leverOf := func(annotations map[string]string) *workload.Workload {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "db"}}}
		object.SetNamespace("shop")
		object.SetName("web")
		object.SetAnnotations(annotations)
		w, _ := workload.Read(lever, object, reading)
		return w
	}
	tests := []struct {
		name   string
		kind   workload.Kind
		w      *workload.Workload
		failed int64
	}{
		{"a Deployment", deployments, workloadOf(t, "auto", wholeDB, nil), 3},
		{"an object of a target", lever, leverOf(rollOn("auto")), 3},
		{"one that waits until its operator has acted on the last roll", lever, leverOf(map[string]string{"example.org/roll": "now"}), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, reader := measured(t)
			l := newLoop(a.surroundings, unwritten(a))
			refused := func(times int) int64 {
				for range times {
					p := l.debounce.pend(test.w, changeOf(nil))
					l.debounce.take(p)
					l.debounce.drop(p)
					r, err := newTask(test.kind, test.w, decisionsOf(test.w, p), p)
					if err != nil {
						t.Fatal(err)
					}
					r.span = trace.SpanFromContext(t.Context())
					l.completion.finish(t.Context(), patchResult{task: r, err: fmt.Errorf("patching: %w", kube.NotApplied())})
				}
				count, _ := value(collect(t, reader)["keyturn.patch.errors"], attribute.String("kind", test.w.ID.Kind))
				return count
			}
			if got := refused(maxChanged); got != 0 {
				t.Errorf("%d have failed of the first %d, want none", got, maxChanged)
			}
			if got := refused(3); got != test.failed {
				t.Errorf("%d have failed of the next three, want %d", got, test.failed)
			}
		})
	}
}
