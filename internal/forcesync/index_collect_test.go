package forcesync

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestNothingIsCollectedWhileThereIsNoSyncer(t *testing.T) {
	inBed(t, func(b *bed) {
		b.stop = func() {}
		index := NewIndex()
		put := func(name string) {
			index.put(externalsecret.Read(b.parse("metadata: {name: " + name + ", namespace: shop, uid: u-" + name + ", resourceVersion: '1'}")))
		}
		put("before")
		if changed, _ := index.take(); len(changed) != 0 {
			t.Errorf("before there is a syncer it keeps %v", changed)
		}
		y := New(b.host(), index)
		put("meanwhile")
		changed, _ := index.take()
		for _, name := range []string{"before", "meanwhile"} {
			if _, kept := changed[types.NamespacedName{Namespace: "shop", Name: name}]; !kept {
				t.Errorf("the syncer is not told of %q: %v", name, changed)
			}
		}
		y.Stop(t.Context())
		put("after")
		if changed, _ := index.take(); len(changed) != 0 {
			t.Errorf("after the syncer has stopped it keeps %v", changed)
		}
	})
}
