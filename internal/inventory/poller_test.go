package inventory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// listing is an API server of Deployments, one in each namespace, which may only be listed. Version is the resourceVersion.
type listing struct {
	mu       sync.Mutex
	version  int
	versions map[string]int
	fault    error
	// annotations are those of the Deployments, by namespace.
	annotations map[string]map[string]string
	// lists are the namespaces that were listed, "" for all of them.
	lists []string
	log   testkit.Log
}

// change changes the API server under its lock.
func (l *listing) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// lines returns how many lines were logged that contain a text, and what was logged.
func (l *listing) lines(text string) (int, string) {
	log := l.log.String()
	return strings.Count(log, text), log
}

func (l *listing) write(namespace string) {
	l.change(func() {
		l.version++
		l.versions[namespace] = l.version
	})
}

func (l *listing) list(_ context.Context, _ *kindStore, namespace string, _ metav1.ListOptions) (runtime.Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = append(l.lists, namespace)
	if l.fault != nil {
		return nil, l.fault
	}
	list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(l.version)}}
	for in, version := range l.versions {
		if namespace == "" || namespace == in {
			list.Items = append(list.Items, appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Name: "web", Namespace: in, UID: types.UID("uid-" + in), ResourceVersion: strconv.Itoa(version), Annotations: l.annotations[in],
			}})
		}
	}
	return list, nil
}

// polled runs a poller of some namespaces until the bubble of the test ends.
func polled(t *testing.T, namespaces ...string) (*listing, *Index, *poller) {
	t.Helper()
	l := &listing{versions: make(map[string]int)}
	for _, namespace := range namespaces {
		l.write(namespace)
	}
	x := indexOf()
	store := &kindStore{Index: x, kind: deployments, lists: kube.NewFirstLists()}
	p := newPoller(store, l, slog.New(slog.NewTextHandler(&l.log, nil)), time.Now)
	go func() { _ = p.run(t.Context()) }()
	synctest.Wait()
	return l, x, p
}

// after does something, waits, and returns what was listed meanwhile.
func (l *listing) after(d time.Duration, do ...func()) []string {
	l.change(func() { l.lists = nil })
	for _, each := range do {
		each()
	}
	<-time.After(d)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

func known(x *Index, namespace string) string {
	if w := x.Get(workload.Key{Kind: "deployment", Namespace: namespace, Name: "web"}); w != nil {
		return w.Version
	}
	return ""
}

func TestAnIdleClusterIsListedTwiceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, x, _ := polled(t, "bank", "shop")
		if diff := cmp.Diff([]string{""}, l.after(quietInterval)); diff != "" {
			t.Error(diff)
		}
		if known(x, "bank") != "1" || known(x, "shop") != "2" {
			t.Errorf("known: got %q and %q", known(x, "bank"), known(x, "shop"))
		}
		l.write("shop")
		l.change(func() { delete(l.versions, "bank") })
		if diff := cmp.Diff([]string{"", ""}, l.after(2*quietInterval)); diff != "" {
			t.Error(diff)
		}
		if known(x, "bank") != "" || known(x, "shop") != "3" {
			t.Errorf("known: got %q and %q", known(x, "bank"), known(x, "shop"))
		}
	})
}

func TestANamespaceIsListedWhileItsWorkloadsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, x, p := polled(t, "bank", "shop")
		l.after(quietInterval)
		l.write("shop")
		look := func() { p.look("shop") }
		if diff := cmp.Diff([]string{"shop"}, l.after(0, look)); diff != "" {
			t.Error(diff)
		}
		if known(x, "shop") != "3" || known(x, "bank") != "1" {
			t.Errorf("known: got %q and %q", known(x, "shop"), known(x, "bank"))
		}
		if got := l.after(busyInterval/2, look); len(got) > 0 {
			t.Errorf("asked again at once: it listed %q, want nothing yet", got)
		}
		for range 5 {
			l.write("shop")
			if diff := cmp.Diff([]string{"shop"}, l.after(busyInterval)); diff != "" {
				t.Errorf("while it changes: %s", diff)
			}
		}
		lists := l.after(10 * quietInterval)
		if one := slices.DeleteFunc(slices.Clone(lists), func(namespace string) bool { return namespace == "" }); len(one) > 4 {
			t.Errorf("when nothing changes any more: it was listed %d times alone, want 4 at most", len(one))
		}
		if all := slices.DeleteFunc(lists, func(namespace string) bool { return namespace != "" }); len(all) != 10 {
			t.Errorf("all were listed %d times, want 10", len(all))
		}
	})
}

func TestManyNamespacesAreListedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var namespaces []string
		for i := range 2 * manyNamespaces {
			namespaces = append(namespaces, fmt.Sprintf("team-%d", i))
		}
		l, x, p := polled(t, namespaces...)
		for _, namespace := range namespaces {
			l.write(namespace)
		}
		lists := l.after(busyInterval/2, func() {
			for _, namespace := range namespaces {
				p.look(namespace)
			}
		})
		if len(lists) > manyNamespaces+1 || !slices.Contains(lists, "") {
			t.Errorf("it listed %q, want all at once", lists)
		}
		for _, namespace := range namespaces {
			if want := strconv.Itoa(l.versions[namespace]); known(x, namespace) != want {
				t.Errorf("known of %s: got %q, want %s", namespace, known(x, namespace), want)
			}
		}
	})
}

func TestAListThatIsRefusedIsAskedForEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, x, p := polled(t, "bank", "shop")
		look := func() { p.look("bank"); p.look("shop") }
		l.change(func() { l.fault = errors.New("no") })
		if got := l.after(5*busyInterval, look); len(got) < 3 || len(got) > 4 {
			t.Errorf("it asked %d times in %s, want 3 or 4 in all", len(got), 5*busyInterval)
		}
		// In an idle cluster, everything is listed as often.
		if got := l.after(20*quietInterval, look); len(got) < 15 || len(got) > 22 {
			t.Errorf("it asked %d times in %s, want about 20", len(got), 20*quietInterval)
		}
		if lines, log := l.lines("\n"); lines != 1 {
			t.Errorf("it logged %d lines, want one:\n%s", lines, log)
		}
		l.change(func() { l.fault = nil })
		l.write("shop")
		l.after(quietInterval*3/2, look)
		if known(x, "shop") != "3" {
			t.Error("it is not known after the fault")
		}
	})
}

func TestAnOldListOfEverythingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, x, _ := polled(t, "bank", "shop")
		l.after(quietInterval)
		version := 0
		l.change(func() {
			version, l.version = l.version, 1
			delete(l.versions, "shop")
		})
		l.after(quietInterval)
		if known(x, "shop") == "" {
			t.Error("a workload is gone that an older list does not have")
		}
		l.change(func() { l.version = version + 1 })
		l.after(busyInterval)
		if known(x, "shop") != "" {
			t.Error("a workload is known that a newer list does not have")
		}
	})
}
