package sources

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAnObjectThatCameIntoScopeByALabelIsNotNew(t *testing.T) {
	created := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		selector string
		written  time.Duration
		want     bool
	}{
		{"an object that nobody wrote since is new", "tier=web", 0, true},
		{"an object whose creation spans a second is new", "tier=web", time.Second, true},
		{"an object that was written since has come by a label", "tier=web", 3 * time.Second, false},
		{"an object that was written since is new where labels do not matter", "", time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			maker := informerMaker{selector: tt.selector}
			meta := metav1.ObjectMeta{
				CreationTimestamp: metav1.NewTime(created),
				ManagedFields:     []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: created.Add(tt.written)}}},
			}
			if got := maker.isNew(newObject(keyringOf(1), events.KindSecret, &meta, nil)); got != tt.want {
				t.Errorf("new: got %t, want %t", got, tt.want)
			}
		})
	}
}
