package sources

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func namespaceOf(name, version, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"team": team}}}
}

func TestNamespaceFilterWithoutSelectorMatchesAllAndAsksNobody(t *testing.T) {
	client := fake.NewClientset()
	filter := newNamespaceFilter(client, labels.Everything(), nil)
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
