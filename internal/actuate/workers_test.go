package actuate

import (
	"errors"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// A patch may take as long as its timeout, so taking turns at free workers is not enough.
func TestTheSlowPatchesOfOneNamespaceLeaveWorkersToAnother(t *testing.T) {
	l, last := crowd(t, testOptions(), 0)
	l.debounce.take(l.debounce.byKey[last.Key()]) // its change comes later
	block := make(chan struct{})
	client, ok := l.patcher.clients.Typed.(*fake.Clientset)
	if !ok {
		t.Fatal("the client is another")
	}
	client.PrependReactor("patch", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
		<-block
		return true, nil, errors.New("no answer")
	})
	defer func() {
		close(block)
		for range l.patcher.drain() {
		}
	}()
	l.dispatcher.dispatch(t.Context())
	if n := started(l, "bank"); n != 8 {
		t.Errorf("%d patches of the crowd are under way, want 8 of 16", n)
	}
	l.debounce.schedule(l.debounce.byKey[last.Key()], written)
	l.dispatcher.dispatch(t.Context())
	if !l.patcher.busy(last.Key()) {
		t.Error("the other namespace waits for a worker")
	}
}

func TestANamespaceHasItsShareOfTheWorkers(t *testing.T) {
	tests := []struct {
		name       string
		namespaces []string
		workers    int
		shop, bank int
		want       bool
	}{
		{name: "alone it may take half", workers: 10, shop: 4, want: true},
		{name: "and no more", workers: 10, shop: 5},
		{name: "of two each may take a third", workers: 9, shop: 2, bank: 3, want: true},
		{name: "and no more", workers: 9, shop: 3, bank: 3},
		{name: "one that has none may take the last", workers: 10, bank: 9, want: true},
		{name: "the only one", workers: 1, want: true},
		{name: "and none where none is free", workers: 10, bank: 10},
		{name: "it may take all where no other is watched", namespaces: []string{"shop"}, workers: 10, shop: 9, want: true},
		{name: "and no more than those", namespaces: []string{"shop"}, workers: 10, shop: 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := testOptions()
			options.PatchWorkers, options.Namespaces = test.workers, test.namespaces
			p := patcherOf(options, indexOf())
			for namespace, count := range map[string]int{"shop": test.shop, "bank": test.bank} {
				for i := range count {
					w := tenantOf(t, namespace, strconv.Itoa(i), nil)
					p.underWay[w.Key()] = &task{workload: w}
				}
			}
			p.underWay[workload.Key{Namespace: "shop", Name: "recorded"}] = &task{background: true}
			p.background++
			if got := p.hasRoom("shop"); got != test.want {
				t.Errorf("it may begin a patch: %t, want %t", got, test.want)
			}
		})
	}
}
