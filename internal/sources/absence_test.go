package sources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

// createdObject is a Secret that was created, and last written some time later.
func createdObject(t *testing.T, created time.Time, written time.Duration) *kinds.Object {
	secret := secretOf(testSource.Namespace, testSource.Name, "u", "1", "one")
	secret.CreationTimestamp = metav1.NewTime(created)
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: created.Add(written)}}}
	return reducedOf(t, secret)
}

func TestAnObjectThatCameIntoScopeByALabelIsNotNew(t *testing.T) {
	for _, tt := range []struct {
		selector string
		written  time.Duration
		want     bool
	}{{"tier=web", 2 * time.Second, true}, {"tier=web", 3 * time.Second, false}, {"", time.Hour, true}} {
		a := &absence{scope: events.Scope{Kinds: []events.Kind{events.KindSecret}, Selector: tt.selector}}
		if got := a.isNew(createdObject(t, epoch, tt.written), false); got != tt.want {
			t.Errorf("written %s after its creation, with the selector %q: new %t, want %t", tt.written, tt.selector, got, tt.want)
		}
	}
}

func TestAnObjectOfTheFirstListIsNewIfItWasCreatedAfterItsScopeWasWatched(t *testing.T) {
	scope := events.Scope{Kinds: []events.Kind{events.KindSecret}}
	until := func(hours int, scope events.Scope) events.Watched {
		return events.Watched{Cluster: testCluster, Time: epoch.Add(time.Duration(hours) * time.Hour), Scope: scope}
	}
	ofLabels, ofNamespaces, ofShop, ofBank := scope, scope, scope, scope
	ofLabels.Selector, ofNamespaces.NamespaceSelector = "tier=web", "team=a"
	ofShop.Namespaces, ofBank.Namespaces = []string{"shop"}, []string{"bank"}
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
		{"other labels were watched", []events.Watched{until(50, ofLabels)}, 60 * time.Hour, false, false},
		{"namespaces with other labels were watched", []events.Watched{until(50, ofNamespaces)}, 60 * time.Hour, false, false},
		{"other namespaces were watched", []events.Watched{until(50, ofBank)}, 60 * time.Hour, false, false},
		{"its namespace was watched", []events.Watched{until(50, ofShop)}, 60 * time.Hour, true, false},
		{"never watched, and created long ago", nil, 99 * time.Hour, false, false},
		{"never watched, and created a short time ago", nil, 99*time.Hour + time.Second, false, true},
		{"never watched, and created later", nil, 101 * time.Hour, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &absence{scope: scope, known: newLedger(), began: epoch.Add(began * time.Hour), earlier: tt.earlier}
			o := createdObject(t, epoch.Add(tt.created), 0)
			if isNew, isRecent := a.isNew(o, true), a.isRecent(o); isNew != tt.isNew || isRecent != tt.isRecent {
				t.Errorf("new %t, recent %t; want %t, %t", isNew, isRecent, tt.isNew, tt.isRecent)
			}
		})
	}
	t.Run("the last event of a source cannot be read", func(t *testing.T) {
		a := &absence{scope: scope, known: newLedger(), began: epoch, earlier: []events.Watched{until(0, scope)}}
		a.known.set(testSource, kinds.UnreadableEvent(7))
		o := createdObject(t, epoch, 0)
		if a.isNew(o, true) {
			t.Error("it is new in the first list, want it known")
		}
		if !a.isNew(o, false) {
			t.Error("it is not new when its creation is seen")
		}
	})
}

// createdAt returns the Secret as the API server creates it at the given time.
func createdAt(secret *corev1.Secret, at time.Time) *corev1.Secret {
	secret.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
	return secret
}

func TestASourceThatWasCreatedWhileNoWatcherRanIsAChange(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	stop := b.ready(b.options())
	b.eventually("the watcher has said that it watches", func() bool {
		list, err := b.bus.Watched(t.Context())
		return err == nil && len(list) == 1
	})
	stop()
	b.create(createdAt(secretOf("shop", "new", "u2", "2", "one"), time.Now()))
	b.create(createdAt(secretOf("shop", "restored", "u3", "3", "one"), time.Now().Add(-24*time.Hour)))
	options := b.options()
	options.Workers = 1
	b.ready(options)()
	got := b.history()
	if len(got) == 3 && got[1] > got[2] { // a list has no order
		got[1], got[2] = got[2], got[1]
	}
	want := []string{"secret/db observed u1/1 {a b} []", "secret/new changed u2/2@2 {a b} [a b] created", "secret/restored observed u3/3 {a b} []"}
	testkit.WantEqual(t, "events", want, got)
}

func namespaceOf(name, version, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"team": team}}}
}

func TestANamespaceThatIsCreatedBringsWhatIsNew(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), namespaceOf("shop", "1", "a"), namespaceOf("bank", "1", "b"))
	options := b.options()
	options.NamespaceSelector = "team=a"
	w, stop := b.startReady(options)
	defer stop()
	// The watch of namespaces is behind that of Secrets.
	b.create(secretOf("bank", "new", "u2", "2", "one"))
	b.create(secretOf("late", "new", "u3", "3", "one"))
	b.create(secretOf("shop", "new", "u4", "4", "one"))
	b.eventually("what is in a known one is told", func() bool { return len(b.history()) == 2 })
	<-w.pending.quiet()
	_, err := b.client.CoreV1().Namespaces().Update(t.Context(), namespaceOf("bank", "5", "a"), metav1.UpdateOptions{})
	testkit.Must(t, err)
	b.eventually("what is in the labelled one is told", func() bool { return len(b.history()) == 3 })
	_, err = b.client.CoreV1().Namespaces().Create(t.Context(), namespaceOf("late", "6", "a"), metav1.CreateOptions{})
	testkit.Must(t, err)
	b.eventually("what is in the new one is told", func() bool { return len(b.history()) == 4 })
	want := []string{"secret/new observed u2/2 {a b} []", "secret/new changed u3/3@3 {a b} [a b] created"}
	testkit.WantEqual(t, "events", want, b.history()[2:])
}
