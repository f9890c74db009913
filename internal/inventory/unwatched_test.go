package inventory

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// unwatchable runs an inventory of Deployments that may be listed but not watched, until the test ends.
func unwatchable(t *testing.T, l *listing, namespaces ...string) *Inventory {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("list", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		list, err := l.list(t.Context(), nil, action.GetNamespace(), metav1.ListOptions{})
		return true, list, err
	})
	client.PrependWatchReactor("deployments", func(k8stesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", nil)
	})
	return running(t, Options{
		Clients: workload.Clients{Typed: client, Unrecorded: true}, Kinds: workload.Kinds{deployments}, Namespaces: namespaces, Reloader: true,
		Reading: workload.Reading{Stores: everyStore}, Changes: heard{func(workload.Key) {}, unlinked},
		Log: slog.New(slog.NewTextHandler(&l.log, nil)), Now: time.Now,
	})
}

// listingOf returns an API server with a Deployment in each namespace that has the annotations.
func listingOf(annotations map[string]map[string]string) *listing {
	l := &listing{versions: make(map[string]int), annotations: annotations}
	for namespace := range annotations {
		l.write(namespace)
	}
	return l
}

func TestABusyNamespaceStaysBusyWhenAWatchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listingOf(map[string]map[string]string{"shop": nil, "bank": nil})
		i := unwatchable(t, l)
		l.after(watchAgain - 5*busyInterval)
		i.Look(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"})
		changing := func(passes int) (lists []string) {
			for range passes {
				l.write("shop")
				lists = append(lists, l.after(busyInterval)...)
			}
			return lists
		}
		changing(5)
		shop := slices.DeleteFunc(changing(5), func(namespace string) bool { return namespace != "shop" })
		if len(shop) < 4 {
			t.Errorf("it was listed %d times in %s after the watch was refused again, want 4 at least", len(shop), 5*busyInterval)
		}
		if got := known(i.Index, "shop"); got != "12" {
			t.Errorf("known: got %s, want 12", got)
		}
		if lines, log := l.lines("no permission to watch"); lines != 1 {
			t.Errorf("it said %d times that it may not watch, want once:\n%s", lines, log)
		}
	})
}

func TestASecretInAStoreHasTheNamespacesListedThatReadIt(t *testing.T) {
	path := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
	elsewhere := path
	elsewhere.Mount = "kv"
	annotations := map[string]map[string]string{
		"bank": rollOn("auto"), "shop": rollOn("openbao:secret/shop/db"), "team": rollOn("openbao:bao:secret/shop/*"),
	}
	tests := []struct {
		name       string
		namespaces []string
		path       events.StorePath
		want       []string
	}{
		{"one that two of three namespaces read", nil, path, []string{"shop", "team"}},
		{"one that only a pattern may match", nil, elsewhere, []string{"team"}},
		{"one that is read in a namespace of those that are listed", []string{"bank", "shop"}, path, []string{"shop"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := listingOf(annotations)
				i := unwatchable(t, l, test.namespaces...)
				lists := l.after(busyInterval/2, func() { i.Look(test.path.Source()) })
				slices.Sort(lists)
				if diff := cmp.Diff(test.want, lists); diff != "" {
					t.Errorf("listed at once: %s", diff)
				}
				all := 0
				for range 30 {
					l.write("bank")
					all += len(slices.DeleteFunc(l.after(busyInterval), func(namespace string) bool { return namespace != "" }))
				}
				if all > 2 {
					t.Errorf("everything was listed %d times in a minute, while a namespace changed that does not read it; want twice", all)
				}
			})
		})
	}
}
