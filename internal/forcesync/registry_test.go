package forcesync

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestASyncIsFoundByItsExternalSecretAndByWhatThatWrites(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "db"}
	written := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	es := &externalsecret.ExternalSecret{}
	es.Target = written
	first := &pendingSync{key: key{rotation("a", 1, nil).Source, name}, seen: es}
	second := &pendingSync{key: key{rotation("b", 1, nil).Source, name}, seen: es}
	r := newRegistry()
	for _, s := range []*pendingSync{first, second} {
		r.add(s)
		r.see(s, es)
	}
	if len(r.byKey) != 2 || len(r.bySecret[name]) != 2 || len(r.byTarget[written]) != 2 {
		t.Errorf("two are not found: %+v", r)
	}
	moved := &externalsecret.ExternalSecret{}
	moved.Target = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "moved"}
	r.see(first, moved)
	if r.byTarget[moved.Target][first.key] != first || len(r.byTarget[written]) != 1 {
		t.Errorf("one that writes something else is not found by that: %+v", r)
	}
	r.remove(first)
	if r.bySecret[name][second.key] != second || r.byTarget[written][second.key] != second || len(r.byTarget[written]) != 1 {
		t.Errorf("the other is not found: %+v", r)
	}
	r.remove(second)
	if len(r.byKey)+len(r.bySecret)+len(r.byTarget) != 0 {
		t.Errorf("something is left: %+v", r)
	}
}
