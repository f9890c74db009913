package sources

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// enteredFunc is called for each namespace that comes into scope.
type enteredFunc func(name string, as arrival)

func (f enteredFunc) enterNamespace(name string, as arrival) { f(name, as) }

func namespaceOf(name, version, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: version, Labels: map[string]string{"team": team}, Annotations: map[string]string{"long": "text"},
	}}
}

func TestNamespaceFilterWithoutSelectorMatchesAllAndAsksNobody(t *testing.T) {
	client := fake.NewClientset()
	filter := newNamespaceFilter(client, labels.Everything(), enteredFunc(func(name string, _ arrival) { t.Errorf("%s entered", name) }))
	var running sync.WaitGroup
	must(t, filter.start(t.Context(), &running, cache.DefaultWatchErrorHandler))
	running.Wait()
	if !filter.hasSynced() || !filter.matches("shop") || !filter.matches("") {
		t.Errorf("synced %t, matches %t", filter.hasSynced(), filter.matches("shop"))
	}
	if actions := client.Actions(); len(actions) != 0 {
		t.Errorf("it asked the API server for %v", actions)
	}
}

func TestNamespaceFilterFollowsTheLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset(namespaceOf("shop", "1", "a"), namespaceOf("bank", "1", "b"))
		selector, err := labels.Parse("team=a")
		must(t, err)
		var entered []string
		filter := newNamespaceFilter(client, selector, enteredFunc(func(name string, as arrival) {
			entered = append(entered, name+map[arrival]string{byList: " from the first", byLabel: " by its label", byCreation: " as it is created"}[as])
		}))
		var running sync.WaitGroup
		must(t, filter.start(ctx, &running, cache.DefaultWatchErrorHandler))
		defer running.Wait()
		defer stop()
		synctest.Wait()

		want := func(step string, wantEntered []string, wantMatches ...string) {
			t.Helper()
			var matches []string
			for _, name := range []string{"shop", "bank", "new", "missing"} {
				if filter.matches(name) {
					matches = append(matches, name)
				}
			}
			if !slices.Equal(matches, wantMatches) {
				t.Errorf("%s: it matches %v, want %v", step, matches, wantMatches)
			}
			if diff := cmp.Diff(wantEntered, entered); diff != "" {
				t.Errorf("%s: entered (-want +got):\n%s", step, diff)
			}
			entered = nil
		}
		update := func(namespace *corev1.Namespace) {
			t.Helper()
			_, err := client.CoreV1().Namespaces().Update(ctx, namespace, metav1.UpdateOptions{})
			must(t, err)
			synctest.Wait()
		}
		want("at first", []string{"shop from the first"}, "shop")

		update(namespaceOf("bank", "2", "a"))
		want("a namespace that gets the label", []string{"bank by its label"}, "shop", "bank")

		update(namespaceOf("shop", "4", "c"))
		want("a namespace that loses it", nil, "bank")

		_, err = client.CoreV1().Namespaces().Create(ctx, namespaceOf("new", "5", "a"), metav1.CreateOptions{})
		must(t, err)
		synctest.Wait()
		want("a namespace that is made with it", []string{"new as it is created"}, "bank", "new")
	})
}
