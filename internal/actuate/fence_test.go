package actuate

import (
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

func TestAWorkloadThatAnotherLeaderRolledIsDecidedAgain(t *testing.T) {
	b, other := newRevertBed(t), newRevertBed(t)
	other.change()
	b.deployment = other.deployment // which the index does not know yet
	b.change()
	for range 2 * kube.MaxDenials {
		b.act()
	}
	if got := b.outcomes(); len(got) != 0 {
		t.Fatalf("got %+v before it is known what the other leader wrote", got)
	}
	if b.deployment != other.deployment {
		t.Errorf("the record became %s, want that of the other leader", b.deployment.Annotations[annotationRolled])
	}
	b.intake.index.Written(b.read())
	b.act()
	b.act()
	got := b.outcomes()
	if len(got) == 0 || slices.ContainsFunc(got, func(o events.Outcome) bool { return o.Verb == events.VerbFailed }) {
		t.Errorf("got %+v, want that it is already rolled", got)
	}
	if b.deployment != other.deployment || len(b.debounce.byKey) > 0 {
		t.Errorf("the record became %s; %d workloads wait", b.deployment.Annotations[annotationRolled], len(b.debounce.byKey))
	}
}

func TestACorrectionOfAnEarlierRecordChangesNothing(t *testing.T) {
	b := newRevertBed(t)
	b.change()
	b.revert()
	record := `{"secret/db":"` + fp("c") + `@110/uid"}`
	b.deployment.Annotations[annotationRolled] = record // by another leader
	for range 2 * kube.MaxDenials {
		b.act()
	}
	if got := b.deployment.Annotations[annotationRolled]; got != record {
		t.Errorf("the record is %s, want %s", got, record)
	}
}
