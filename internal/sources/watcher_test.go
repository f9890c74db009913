package sources

import (
	"strconv"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWatcherPublishesWhatHappens(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "u2", ResourceVersion: "2"},
		Data:       map[string]string{"level": "debug"},
	})
	options := b.options()
	options.Workers = 1 // so that the order is known
	stop := b.ready(options)
	b.eventually("both sources are observed", func() bool { return len(b.history()) == 2 })

	b.update(secretOf("shop", "db", "u1", "11", "two"))
	b.eventually("the change is published", func() bool { return len(b.history()) == 3 })
	b.update(secretOf("shop", "db", "u1", "12", "two")) // metadata only
	b.create(secretOf("shop", "new", "u3", "13", "one"))
	b.eventually("the creation is published", func() bool { return len(b.history()) == 4 })
	b.delete("shop", "db")
	b.eventually("the deletion is published", func() bool { return len(b.history()) == 5 })
	b.create(secretOf("shop", "db", "u4", "15", "two"))
	b.eventually("the return is published", func() bool { return len(b.history()) == 6 })
	stop()

	got := b.history()
	if got[0] > got[1] { // the two kinds are listed at once
		got[0], got[1] = got[1], got[0]
	}
	want := []string{
		"configmap/app observed u2/2 {level} []",
		"secret/db observed u1/1 {a b} []",
		"secret/db changed u1/11@11 {a@11 b} [a] previous",
		"secret/new changed u3/13@13 {a b} [a b] created",
		"secret/db deleted u1/11@11 {a@11 b} []",
		"secret/db observed u4/15@11 {a@11 b} [] previous",
	}
	testkit.WantEqual(t, "events", want, got)
	if strings.Contains(b.log.String(), canary) {
		t.Errorf("the value was logged:\n%s", b.log)
	}
}

func TestWatcherFindsWhatHappenedWhileItWasAway(t *testing.T) {
	b := newBench(t, secretOf("shop", "same", "u1", "1", "one"))
	options := b.options()
	stop := b.ready(options)
	b.want("secret/same observed u1/1 {a b} []")
	b.create(secretOf("shop", "changes", "u2", "2", "one"))
	b.eventually("it is published", func() bool { return len(b.history()) == 2 })
	b.create(secretOf("shop", "goes", "u3", "3", "one"))
	b.eventually("it is published", func() bool { return len(b.history()) == 3 })
	stop()

	b.update(secretOf("shop", "same", "u1", "10", "one"))
	b.update(secretOf("shop", "changes", "u2", "11", "two"))
	b.update(secretOf("shop", "changes", "u2", "12", "three"))
	b.delete("shop", "goes")
	stop = b.ready(options)
	b.eventually("what happened is published", func() bool { return len(b.history()) == 5 })
	stop()
	got := b.history()[3:]
	if got[0] > got[1] { // what is missing is known once all is listed, and sources have no order
		got[0], got[1] = got[1], got[0]
	}
	want := []string{
		"secret/changes changed u2/12@12 {a@12 b} [a] previous",
		"secret/goes deleted u3/3@3 {a b} []",
	}
	testkit.WantEqual(t, "events", want, got)

	b.ready(options)()
	if got := b.history(); len(got) != 5 {
		t.Errorf("after one more restart there are also %v", got[5:])
	}
}

func TestWatchersOfOneClusterSayEachChangeOnce(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "0"))
	one, stopOne := b.startReady(b.options())
	defer stopOne()
	other, stopOther := b.startReady(b.options())
	defer stopOther()
	want := []string{"secret/db observed u1/1 {a b} []"}
	b.eventually("both have said what they watch", func() bool { return b.lastSeq() == 3 })
	for i := range 20 {
		version := strconv.Itoa(i + 2)
		b.update(secretOf("shop", "db", "u1", version, version))
		want = append(want, "secret/db changed u1/"+version+"@"+version+" {a@"+version+" b} [a] previous")
		b.want(want...)
	}

	// An informer calls its handler in order, so a watcher that knows the last Secret has received every earlier change.
	b.create(secretOf("shop", otherSource.Name, "u2", "22", "one"))
	for _, w := range []*Watcher{one, other} {
		b.eventually("the watcher knows the last Secret", func() bool { return w.ledger.get(otherSource) != nil })
		<-w.pending.quiet()
	}
	b.want(append(want, "secret/other changed u2/22@22 {a b} [a b] created")...)
	for source, seq := range map[events.Source]uint64{testSource: 23, otherSource: 24} {
		if got := b.seqOf(source); got != seq {
			t.Errorf("the last event of %s has the sequence %d, want %d", source, got, seq)
		}
	}
	wantSettled(t, one, testSource, otherSource)
	wantSettled(t, other, testSource, otherSource)
}

func TestWatcherKeepsTheContentOfASourceOnce(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "0"))
	w, stop := b.startReady(b.options())
	wantSettled(t, w, testSource)
	stop()
	w, stop = b.startReady(b.options())
	defer stop()
	wantSettled(t, w, testSource)
	b.update(secretOf("shop", "db", "u1", "2", "0")) // Only its metadata.
	b.eventually("the watcher has seen it, and keeps no more of it", func() bool {
		return w.informers.cached.Lookup(testSource).ResourceVersion == "2" && isSettled(w, testSource)
	})
}

func wantSettled(t *testing.T, w *Watcher, sources ...events.Source) {
	t.Helper()
	for _, source := range sources {
		if !isSettled(w, source) {
			t.Errorf("%s is kept beside its last event", source)
		}
	}
}

// isSettled reports whether what the watcher has of a source, and its last event, share the text of the UID.
func isSettled(w *Watcher, source events.Source) bool {
	uid := w.informers.cached.Lookup(source).UID
	return unsafe.StringData(string(uid)) == unsafe.StringData(w.ledger.get(source).UID)
}

func TestWatcherKeepsToItsScope(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("bank", "db", "u2", "2", "one"))
	options := b.options()
	options.IgnoreNamespaces, options.Kinds = []string{"bank"}, []string{"secret"}
	b.ready(options)()
	b.want("secret/db observed u1/1 {a b} []")
	for _, action := range b.client.Actions() {
		list, ok := action.(k8stesting.ListAction)
		if !ok {
			continue
		}
		fields := list.GetListRestrictions().Fields.String()
		if action.GetResource().Resource != "secrets" || !strings.Contains(fields, "metadata.namespace!=bank") {
			t.Errorf("it listed %s with the fields %s", action.GetResource().Resource, fields)
		}
	}
}
