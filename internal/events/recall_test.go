package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestARecalledEventThatIsRejectedHasADeadLetter(t *testing.T) {
	b := sharedServer(t).bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	delivered := c.next()
	delivered.Done(t.Context(), nil)
	source := version("db", "1").Source
	recall := func() *Delivery {
		t.Helper()
		d, err := Origins{Cluster: testCluster}.Recall(t.Context(), b, source, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if recalled := recall(); delivered.StoredAt.IsZero() || !recalled.StoredAt.Equal(delivered.StoredAt) {
		t.Errorf("it is stored at %s, and was delivered as stored at %s", recalled.StoredAt, delivered.StoredAt)
	}
	recall().Done(t.Context(), nil)
	recall().Done(t.Context(), context.Canceled)
	recall().Done(t.Context(), errors.New("later"))
	recall().Done(t.Context(), rejectf("not-wanted", "no"))
	rejected := time.Now()
	var letters []DeadLetter
	testkit.Await(t, "it has a dead letter", func(ctx context.Context) bool {
		var err error
		letters, err = b.DeadLetters(ctx, 10)
		if time.Since(rejected) > 2*deadLetterTimeout { // Nobody delivers it again if its dead letter had no answer.
			rejected = time.Now()
			recall().Done(t.Context(), rejectf("not-wanted", "no"))
		}
		return err == nil && len(letters) > 0
	})
	if letter := letters[0]; len(letters) != 1 || letter.Seq != seq || letter.Reason != "not-wanted" || letter.Subject != Subject(testCluster, source) {
		t.Errorf("got %+v, want one of sequence %d", letters, seq)
	}
	e, err := FromMsg(letters[0].Subject, letters[0].Header, letters[0].Data)
	if err != nil || e.ID() != version("db", "1").ID() {
		t.Errorf("the dead letter has the event %q, %v", e.ID(), err)
	}
	c.stop()
	recall().Done(t.Context(), rejectf("not-wanted", "no"))
}
