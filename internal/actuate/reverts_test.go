package actuate

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// revertBed is a loop and the Deployment web, which others also write.
type revertBed struct {
	*testing.T
	*loop
	now        time.Time
	deployment *appsv1.Deployment
	reading    workload.Reading
	// strips makes admission remove what the actuator writes to the pod template.
	strips bool
	// watches reports whether the watch shows a write before its answer arrives. If it is nil, the watch shows none.
	watches func(*appsv1.Deployment) bool
	// loses drops the answers to patches. Answers, if not nil, is the answer to each of them.
	loses   bool
	answers error
}

func newRevertBed(t *testing.T) *revertBed {
	t.Helper()
	return newReadBed(t, workload.Reading{}, rollOn("auto"))
}

func newReadBed(t *testing.T, reading workload.Reading, annotations map[string]string) *revertBed {
	t.Helper()
	b := &revertBed{T: t, now: written, deployment: webDeployment("50", annotations), reading: reading}
	client := fake.NewClientset()
	client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		after, err := b.patch(action)
		return true, after, err
	})
	options := testOptions()
	options.Client, options.Now, options.Reloader = client, func() time.Time { return b.now }, reading.Reloader
	options.MaxRollsPerHour = reading.MaxRollsPerHour
	b.loop = loopOf(t, options, b.read())
	return b
}

func (b *revertBed) read() *workload.Workload {
	b.Helper()
	w, ok := workload.Read(deployments, b.deployment, b.reading)
	if !ok {
		b.Fatal("no workload")
	}
	return w
}

// patch answers a patch as the API server does.
func (b *revertBed) patch(action k8stesting.Action) (*appsv1.Deployment, error) {
	if b.answers != nil {
		return nil, b.answers
	}
	object, err := patched(b.deployment, action)
	if err != nil {
		return nil, err
	}
	after, _ := object.(*appsv1.Deployment)
	b.write("keyturn", func(d *appsv1.Deployment) {
		d.Annotations = after.Annotations
		if !b.strips {
			d.Spec.Template.Annotations = after.Spec.Template.Annotations
		}
	})
	if b.watches != nil && b.watches(b.deployment) {
		b.intake.index.Written(b.read())
	}
	if b.loses {
		return nil, errors.New("connection reset")
	}
	return b.deployment, nil
}

// write changes the Deployment as the given manager.
func (b *revertBed) write(manager string, change func(*appsv1.Deployment)) {
	d := b.deployment.DeepCopy()
	change(d)
	version, _ := strconv.Atoi(d.ResourceVersion)
	d.ResourceVersion = strconv.Itoa(version + 1)
	d.Generation++
	d.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: manager, Time: &metav1.Time{Time: b.now}},
		{Manager: "kube-controller-manager", Time: &metav1.Time{Time: b.now.Add(time.Second)}, Subresource: "status"},
	}
	b.deployment = d
}

// change decides the change, and carries out what follows.
func (b *revertBed) change() {
	b.Helper()
	event := eventOf(changeOf(nil))
	event.open, event.delivery.Received = 1, b.now // open, so that it is not finished: no message came with it
	b.intake.consider(b.Context(), event, b.intake.index.Get(b.read().Key()), nil)
	b.act()
}

// act carries out what is due.
func (b *revertBed) act() {
	b.Helper()
	b.now = b.now.Add(time.Minute)
	b.rollouts.reverts.advance(b.Context())
	b.dispatcher.dispatch(b.Context())
	for !b.patcher.idle() {
		b.completion.finish(b.Context(), <-b.patcher.results)
	}
}

// revert writes the pod template without the annotations, as someone else.
func (b *revertBed) revert() {
	b.Helper()
	b.write("operator", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil })
	b.intake.index.Written(b.read())
	b.rollouts.review(b.Context(), b.read().Key())
}

// outcomes takes the outcomes that were reported.
func (b *revertBed) outcomes() []events.Outcome {
	var list []events.Outcome
	for _, r := range b.outbox.waiting {
		list = append(list, r.outcome)
	}
	b.outbox.flushed()
	return list
}

func (b *revertBed) question() question {
	return question{workload: b.read().Key(), source: db, why: recallReverted}
}

func TestARollThatIsRevertedIsRepeatedAndAtLastGivenUp(t *testing.T) {
	b := newRevertBed(t)
	revisions := map[string]bool{}
	for _, delay := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 0} {
		b.change()
		started := b.outcomes()
		if len(started) != 1 || started[0].Verb != events.VerbStarted {
			t.Fatalf("got %+v, want the start of a rollout", started)
		}
		revisions[started[0].Revision] = true
		b.revert()
		ended := b.outcomes()
		if len(ended) != 1 || ended[0].Verb != events.VerbFailed || ended[0].Reason != "reverted" || !strings.Contains(ended[0].Message, `"operator"`) {
			t.Fatalf("got %+v, want a rollout that was reverted, and by whom", ended)
		}
		b.act()
		due, asked := b.recaller.asked[b.question()]
		if asked != (delay > 0) || asked && due.Sub(b.recaller.now()) != delay {
			t.Errorf("it is decided again: %t, in %s, want in %s", asked, due.Sub(b.recaller.now()), delay)
		}
		delete(b.recaller.asked, b.question())
	}
	if len(revisions) != 4 {
		t.Errorf("there are %d revisions, want one for each roll", len(revisions))
	}
	if got := b.intake.index.Reverted(plan.RevertRetries)["deployment"]; got != 1 {
		t.Errorf("%d workloads are given up, want 1", got)
	}
	w := b.read()
	if got := decisionOf(w, changeOf(nil), nil).Reason; got != plan.Reverted {
		t.Errorf("the same change again: got %s", got)
	}
	next := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("c") })
	if got := decisionOf(w, next, nil).Reason; got != plan.Changed {
		t.Errorf("the next change: got %s", got)
	}
	b.write("operator", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" })
	if got := decisionOf(b.read(), changeOf(nil), nil).Reason; got != plan.Changed {
		t.Errorf("with another pod template: got %s", got)
	}
}

// wipe removes all annotations that an operator does not know, as the operator does whenever someone has added one.
func (b *revertBed) wipe() {
	b.Helper()
	b.write("operator", func(d *appsv1.Deployment) { d.Annotations, d.Spec.Template.Annotations = rollOn("auto"), nil })
	b.intake.index.Written(b.read())
	b.rollouts.review(b.Context(), b.read().Key())
}

func TestRevertsAreCountedWhenTheCountIsRemovedToo(t *testing.T) {
	b := newRevertBed(t)
	for round := range plan.RevertRetries + 1 {
		b.change()
		if started := b.outcomes(); len(started) != 1 || started[0].Verb != events.VerbStarted {
			t.Fatalf("round %d: got %+v, want the start of a rollout", round, started)
		}
		b.wipe()
		if ended := b.outcomes(); len(ended) != 1 || ended[0].Reason != "reverted" {
			t.Fatalf("round %d: got %+v, want a rollout that was reverted", round, ended)
		}
		b.act()
		b.wipe()
	}
	w := b.intake.index.Get(b.read().Key())
	if got := decisionOf(w, changeOf(nil), nil).Reason; got != plan.Reverted {
		t.Errorf("the same change again: got %s", got)
	}
	next := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("c") })
	if got := decisionOf(w, next, nil).Reason; got != plan.Changed {
		t.Errorf("the next change: got %s", got)
	}
}

func TestARevertedRollLeavesTheRecordOfBefore(t *testing.T) {
	b := newRevertBed(t)
	before := `{"secret/db":"` + fp("z") + `@80/uid"}`
	b.write("test", func(d *appsv1.Deployment) { d.Annotations[annotationRolled] = before })
	b.intake.index.Written(b.read())
	b.change()
	b.revert()
	b.act()
	if got := b.deployment.Annotations[annotationRolled]; got != before {
		t.Errorf("the record is %s, want %s", got, before)
	}
	if got := decisionOf(b.read(), changeOf(nil), nil).Reason; got != plan.Changed {
		t.Errorf("whoever looks at it now decides %s", got)
	}
	back := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("z") })
	if got := decisionOf(b.read(), back, nil).Reason; got != plan.SameContent {
		t.Errorf("the content that the pods have: got %s", got)
	}
}

func TestAnotherPodTemplateSupersedesARoll(t *testing.T) {
	b := newRevertBed(t)
	b.change()
	record := b.deployment.Annotations[annotationRolled]
	b.outcomes()
	b.write("kubectl", func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations, d.Spec.Template.Spec.Containers[0].Image = nil, "app:2"
	})
	b.intake.index.Written(b.read())
	b.rollouts.review(t.Context(), b.read().Key())
	b.act()
	if got := b.outcomes(); len(got) != 1 || got[0].Verb != events.VerbSkipped || got[0].Reason != "superseded" {
		t.Errorf("got %+v", got)
	}
	if got := b.deployment.Annotations[annotationRolled]; got != record {
		t.Errorf("the record is %s, want %s: the pods are new", got, record)
	}
}

func TestTheNextLeaderGoesOnWithWhatWasReverted(t *testing.T) {
	b := newRevertBed(t)
	b.change()
	b.revert()
	outcomes := b.outcomes()
	next := newRevertBed(t)
	next.deployment = b.deployment
	next.intake.index.Listed(next.read(), "")
	next.rollouts.reverts.resumeOutcome(t.Context(), outcomes[len(outcomes)-1])
	next.act()
	if got := decisionOf(next.read(), changeOf(nil), nil).Reason; got != plan.Changed {
		t.Errorf("after the next leader has corrected the record: got %s", got)
	}
	third := newRevertBed(t)
	third.deployment = next.deployment
	third.intake.index.Listed(third.read(), "")
	third.rollouts.reverts.resume()
	if _, asked := third.recaller.asked[third.question()]; !asked {
		t.Error("the leader after it does not have the change decided again")
	}
}

func TestARollThatAdmissionStripsIsDenied(t *testing.T) {
	b := newRevertBed(t)
	b.strips = true
	b.change()
	if got := b.outcomes(); len(got) != 0 {
		t.Fatalf("got %+v, want nothing before it is given up", got)
	}
	if got := decisionOf(b.intake.index.Get(b.read().Key()), changeOf(nil), nil).Reason; got != plan.Changed {
		t.Errorf("the record makes it %s", got)
	}
	for range 5 {
		b.act()
	}
	got := b.outcomes()
	if len(got) != 1 || got[0].Verb != events.VerbFailed || got[0].Reason != events.ReasonPatchDenied || !strings.Contains(got[0].Message, "webhook") {
		t.Fatalf("got %+v, want that it is denied", got)
	}
	if reason := decisionOf(b.read(), changeOf(nil), nil).Reason; reason != plan.Changed {
		t.Errorf("after it was given up: got %s", reason)
	}
}
