package sources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createdAt returns the Secret as the API server creates it at the given time.
func createdAt(secret *corev1.Secret, at time.Time) *corev1.Secret {
	secret.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
	return secret
}

// hasWatched waits until a watcher has recorded on the stream that it is watching.
func (b *bench) hasWatched() {
	b.Helper()
	b.eventually("the watcher has said that it watches", func() bool {
		list, err := b.bus.Watched(b.Context())
		return err == nil && len(list) == 1
	})
}

func TestASourceThatWasCreatedWhileNoWatcherRanIsAChange(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	stop := b.ready(b.options())
	b.hasWatched()
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
	wantEqual(t, "events", want, got)
}

func TestWhatAWatcherSaysThatItWatchesSurvivesALossOfTheStream(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	stop := b.ready(b.watchful())
	b.hasWatched()
	b.purge()
	b.hasWatched()
	stop()
	b.create(createdAt(secretOf("shop", "new", "u2", "2", "one"), time.Now()))
	b.ready(b.options())()
	b.wantState(map[string]string{"secret/db": "observed u1/1 {a b} []", "secret/new": "changed u2/2@2 {a b} [a b] created"})
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
	if _, err := b.client.CoreV1().Namespaces().Update(t.Context(), namespaceOf("bank", "5", "a"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("what is in the labelled one is told", func() bool { return len(b.history()) == 3 })
	if _, err := b.client.CoreV1().Namespaces().Create(t.Context(), namespaceOf("late", "6", "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("what is in the new one is told", func() bool { return len(b.history()) == 4 })
	want := []string{"secret/new observed u2/2 {a b} []", "secret/new changed u3/3@3 {a b} [a b] created"}
	wantEqual(t, "events", want, b.history()[2:])
}

func TestASourceThatIsFirstSeenShortlyAfterItsCreationSaysWhenThatWas(t *testing.T) {
	at := time.Now().Add(-time.Minute).Truncate(time.Second).UTC()
	b := newBench(t, createdAt(secretOf("shop", "db", "u1", "1", "one"), at))
	defer b.ready(b.options())()
	b.want("secret/db observed u1/1 {a b} []")
	first := b.changes()[0]
	if !first.Since.Equal(at) || first.CreatedAt != "1" {
		t.Errorf("since %s, created at %q; want %s and 1", first.Since, first.CreatedAt, at)
	}
	b.update(createdAt(secretOf("shop", "db", "u1", "2", "two"), at))
	b.want("secret/db observed u1/1 {a b} []", "secret/db changed u1/2@2 {a@2 b} [a] previous")
	if next := b.changes()[1]; !next.Since.Equal(at) || next.CreatedAt != "1" {
		t.Errorf("the next event: since %s, created at %q; want %s and 1", next.Since, next.CreatedAt, at)
	}
}
