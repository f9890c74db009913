package sources

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// createdObject is a Secret that was created, and last written some time later.
func createdObject(created time.Time, written time.Duration) *object {
	return newObject(keyringOf(1), events.KindSecret, &metav1.ObjectMeta{
		Namespace: testSource.Namespace, Name: testSource.Name, CreationTimestamp: metav1.NewTime(created),
		ManagedFields: []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: created.Add(written)}}},
	}, nil)
}

func TestAnObjectThatCameIntoScopeByALabelIsNotNew(t *testing.T) {
	for _, tt := range []struct {
		name     string
		selector string
		written  time.Duration
		want     bool
	}{
		{"an object that nobody wrote since is new", "tier=web", 0, true},
		{"an object whose times differ by a little is new", "tier=web", creationTakes, true},
		{"an object that was written since has come by a label", "tier=web", creationTakes + time.Second, false},
		{"an object that was written since is new where labels do not matter", "", time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &absence{scope: events.Scope{Kinds: []events.Kind{events.KindSecret}, Selector: tt.selector}}
			if got := a.isNew(createdObject(epoch, tt.written), false); got != tt.want {
				t.Errorf("new: got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAnObjectOfTheFirstListIsNewIfItWasCreatedAfterItsScopeWasWatched(t *testing.T) {
	scope := events.Scope{Kinds: []events.Kind{events.KindSecret}}
	until := func(hours int, scope events.Scope) events.Watched {
		return events.Watched{Cluster: testCluster, Time: epoch.Add(time.Duration(hours) * time.Hour), Scope: scope}
	}
	ofLabels, ofNamespaces, ofShop, ofBank, ofConfigMaps := scope, scope, scope, scope, scope
	ofLabels.Selector, ofNamespaces.NamespaceSelector = "tier=web", "team=a"
	ofShop.Namespaces, ofBank.Namespaces = []string{"shop"}, []string{"bank"}
	ofConfigMaps.Kinds = []events.Kind{events.KindConfigMap}
	const began = 100 // hours
	for _, tt := range []struct {
		name    string
		earlier []events.Watched
		created time.Duration // since the epoch
		// isNew and isRecent are the wanted results.
		isNew, isRecent bool
	}{
		{"created after that", []events.Watched{until(50, scope)}, 50*time.Hour + time.Second, true, false},
		{"created before that, by clocks that may differ", []events.Watched{until(50, scope)}, 50*time.Hour - clockTolerance + time.Second, true, false},
		{"created before that", []events.Watched{until(50, scope)}, 50*time.Hour - clockTolerance, false, false},
		{"created shortly before the watcher began, and after that", []events.Watched{until(99, scope)}, 100*time.Hour - time.Minute, true, false},
		{"created between two times", []events.Watched{until(70, scope), until(30, scope)}, 50 * time.Hour, false, false},
		{"other labels were watched", []events.Watched{until(50, ofLabels)}, 60 * time.Hour, false, false},
		{"namespaces with other labels were watched", []events.Watched{until(50, ofNamespaces)}, 60 * time.Hour, false, false},
		{"other namespaces were watched", []events.Watched{until(50, ofBank)}, 60 * time.Hour, false, false},
		{"its namespace was watched", []events.Watched{until(50, ofShop)}, 60 * time.Hour, true, false},
		{"other kinds were watched", []events.Watched{until(50, ofConfigMaps)}, 60 * time.Hour, false, false},
		{"never watched, and created long ago", nil, 99 * time.Hour, false, false},
		{"never watched, and created a short time ago", nil, 99*time.Hour + time.Second, false, true},
		{"never watched, and created as the watcher began", nil, 100*time.Hour + time.Minute, false, true},
		{"never watched, and created later", nil, 101 * time.Hour, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &absence{scope: scope, known: newLedger(nil), began: epoch.Add(began * time.Hour), earlier: tt.earlier}
			o := createdObject(epoch.Add(tt.created), 0)
			if isNew, isRecent := a.isNew(o, true), a.isRecent(o); isNew != tt.isNew || isRecent != tt.isRecent {
				t.Errorf("new %t, recent %t; want %t, %t", isNew, isRecent, tt.isNew, tt.isRecent)
			}
		})
	}
	t.Run("the last event of a source cannot be read", func(t *testing.T) {
		a := &absence{scope: scope, known: newLedger(nil), began: epoch, earlier: []events.Watched{until(0, scope)}}
		a.known.set(testSource, unreadableEvent(7))
		o := createdObject(epoch, 0)
		if a.isNew(o, true) {
			t.Error("it is new in the first list, want it known")
		}
		if !a.isNew(o, false) {
			t.Error("it is not new when its creation is seen")
		}
	})
	t.Run("an object without a time", func(t *testing.T) {
		a := &absence{scope: scope, known: newLedger(nil), began: epoch, earlier: []events.Watched{until(0, scope)}}
		if o := objectOf(keyringOf(1), "u", 1, nil); a.isNew(o, true) || a.isRecent(o) {
			t.Error("it is new, or recent")
		}
	})
}

func TestASourceIsRecentOnlyIfTheStreamHasNoEventOfIt(t *testing.T) {
	now, unreadable := objectOf(keyringOf(1), "u", 5, nil), unreadableEvent(7)
	recent := view{isRecent: func(*object) bool { return true }}
	if change, _ := assessContent(recent, unreadable, now, false); !change.Since.IsZero() || change.CreatedAt != "" {
		t.Errorf("since %s, created at %q; want neither, because the source was known", change.Since, change.CreatedAt)
	}
	if change, _ := assessContent(recent, nil, now, false); change.CreatedAt != "5" {
		t.Errorf("created at %q without an event, want 5", change.CreatedAt)
	}
}
