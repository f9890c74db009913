package forcesync

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// indexBed feeds an Index.
type indexBed struct {
	*testing.T
	*Index
	version int
}

func newIndexBed(t *testing.T) *indexBed { return &indexBed{T: t, Index: NewIndex()} }

func (b *indexBed) object(text string) *unstructured.Unstructured {
	b.Helper()
	obj := parse(b, text)
	b.version++
	obj.SetResourceVersion(fmt.Sprint(b.version))
	return obj
}

func (b *indexBed) secret(name, key string) *externalsecret.ExternalSecret {
	return externalsecret.Read(b.object(fmt.Sprintf(
		"{metadata: {name: %s, namespace: shop, uid: u-%[1]s}, spec: {secretStoreRef: {name: bao}, data: [{remoteRef: {key: %s}}]}}", name, key)))
}

func (b *indexBed) store(mount string) *externalsecret.Store {
	return externalsecret.ReadStore(b.object(fmt.Sprintf(
		"{metadata: {name: bao, namespace: shop}, spec: {provider: {vault: {server: 'https://bao', path: %s}}}}", mount)))
}

// readers returns the names of the ExternalSecrets that read a path.
func (b *indexBed) readers(path string) []string {
	b.Helper()
	r, ok := externalsecret.RotationOf(rotation(path, 2, nil))
	if !ok {
		b.Fatal("it is no rotation")
	}
	var names []string
	for _, es := range b.find(r.Keys()...) {
		if isRead, _ := es.Reads(b.Index.store, r); isRead {
			names = append(names, es.Name)
		}
	}
	return names
}

func (b *indexBed) wantReaders(path string, want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.readers(path)); diff != "" {
		b.Errorf("readers of %s (-want +got):\n%s", path, diff)
	}
}

func TestTheIndexOfSyncsFollowsWhatChanges(t *testing.T) {
	b := newIndexBed(t)
	db, mail := b.secret("db", "shop/db"), b.secret("mail", "shop/mail")
	b.put(db, false)
	b.put(mail, false)
	b.wantReaders("shop/db") // The store is not known yet.
	b.put(b.store("secret"), false)
	b.wantReaders("shop/db", "db")
	b.put(b.store("other"), false)
	b.wantReaders("shop/db")
	b.put(b.store("secret"), false)
	b.put(b.secret("mail", "shop/db"), false)
	b.wantReaders("shop/db", "db", "mail")
	b.wantReaders("shop/mail")
	b.put(db, true)
	b.wantReaders("shop/db", "mail")
	b.put(b.store("secret"), true)
	b.wantReaders("shop/db")
	b.put(mail, true)
	if len(b.by)+len(b.secrets)+len(b.stores) != 0 {
		t.Errorf("something is left: %+v", b.Index)
	}
}

func TestAnOlderStateOfAnExternalSecretIsDropped(t *testing.T) {
	b := newIndexBed(t)
	older, newer := b.secret("db", "a"), b.secret("db", "b")
	b.put(newer, false)
	b.put(older, false)
	if b.get(nameOf(newer)) != newer {
		t.Error("the older state took the place of the newer")
	}
	successor := b.secret("db", "c")
	successor.UID, successor.ResourceVersion = "another", "1"
	b.put(successor, false)
	if b.get(nameOf(newer)) != successor {
		t.Error("the successor is taken for an older state")
	}
}

func TestTheAnswerToAPatchBringsNothingBack(t *testing.T) {
	b := newIndexBed(t)
	before, after, another := b.secret("db", "a"), b.secret("db", "a"), b.secret("db", "a")
	b.putPatched(after)
	if b.get(nameOf(after)) != nil {
		t.Error("what is gone came back")
	}
	another.UID = "another"
	b.put(before, false)
	b.putPatched(another)
	if b.get(nameOf(before)) != before {
		t.Error("its predecessor came back")
	}
	b.putPatched(after)
	if b.get(nameOf(before)) != after {
		t.Error("the answer is not known")
	}
}
