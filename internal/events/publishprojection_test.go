package events

import (
	"errors"
	"testing"
)

func TestAProjectionIsOnHistoryAndNotTwice(t *testing.T) {
	b := sharedServer(t).bus()
	for range 2 {
		published(t, func() error { return b.PublishProjection(t.Context(), projection()) })
	}
	var found []string
	if err := errorOf(t, func() error {
		found = nil
		return b.History(t.Context(), HistoryQuery{Kind: KindProjection}, func(stored Stored) error {
			p, err := stored.Projection()
			found = append(found, p.Reason)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "on HISTORY", []string{"applied"}, found)
	if _, err := lastOn(t, b, ProjectionSubject(testCluster, projection().Target)); !errors.Is(err, ErrNotFound) {
		t.Errorf("on CHANGES: got %v, want nothing", err)
	}
	foreign := projection()
	foreign.Cluster = "other"
	if err := b.PublishProjection(t.Context(), foreign); !isReject(err, ReasonForeignCluster) {
		t.Errorf("of another cluster: got %v", err)
	}
}
