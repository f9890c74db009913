package forcesync

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// indexBed feeds an Index.
type indexBed struct {
	*testing.T
	*Index
	version int
}

func newIndexBed(t *testing.T) *indexBed {
	index := NewIndex()
	index.attend()
	return &indexBed{T: t, Index: index}
}

// changed returns the names of what has changed since the last call.
func (b *indexBed) changed() []string {
	changed, _ := b.take()
	var names []string
	for name := range changed {
		names = append(names, name.Name)
	}
	slices.Sort(names)
	return names
}

// wantChanged checks what has changed since the last call.
func (b *indexBed) wantChanged(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.changed()); diff != "" {
		b.Errorf("changed (-want +got):\n%s", diff)
	}
}

func (b *indexBed) object(text string) *unstructured.Unstructured {
	b.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		b.Fatal(err)
	}
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
	for _, es := range b.dependents(r) {
		names = append(names, es.Name)
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
	b.put(db)
	b.put(mail)
	b.wantChanged("db", "mail")
	b.wantReaders("shop/db") // nobody knows the store yet
	b.put(b.store("secret"))
	b.wantReaders("shop/db", "db")
	b.put(b.store("other"))
	b.wantReaders("shop/db")
	b.put(b.store("secret"))
	b.wantChanged()
	b.put(b.secret("mail", "shop/db"))
	b.wantChanged("mail")
	b.wantReaders("shop/db", "db", "mail")
	b.wantReaders("shop/mail")
	b.drop(db)
	b.wantChanged("db")
	b.wantReaders("shop/db", "mail")
	b.drop(b.store("secret"))
	b.wantReaders("shop/db")
	b.drop(mail)
	if len(b.Index.readers)+len(b.users)+len(b.templates)+len(b.targets)+len(b.secrets)+len(b.stores) != 0 {
		t.Errorf("something is left: %+v", b.Index)
	}
	b.wantChanged("mail")
}

func TestAnOlderStateOfAnExternalSecretIsDropped(t *testing.T) {
	b := newIndexBed(t)
	older, newer := b.secret("db", "a"), b.secret("db", "b")
	b.put(newer)
	b.wantChanged("db")
	b.put(older)
	b.wantChanged()
	if b.get(nameOf(newer)) != newer {
		t.Error("the older state took the place of the newer")
	}
	successor := b.secret("db", "c")
	successor.UID, successor.ResourceVersion = "another", "1"
	b.put(successor)
	if b.get(nameOf(newer)) != successor {
		t.Error("the successor is taken for an older state")
	}
}

func TestTheAnswerToAPatchBringsNothingBack(t *testing.T) {
	b := newIndexBed(t)
	before, after, another := b.secret("db", "a"), b.secret("db", "a"), b.secret("db", "a")
	b.answer(answer{after: after})
	if b.get(nameOf(after)) != nil {
		t.Error("what is gone came back")
	}
	another.UID = "another"
	b.put(before)
	b.answer(answer{after: another})
	if b.get(nameOf(before)) != before {
		t.Error("its predecessor came back")
	}
	b.answer(answer{after: after})
	if b.get(nameOf(before)) != after {
		t.Error("the answer is not known")
	}
}

func TestAnEventCostsWhatItsReadersCost(t *testing.T) {
	b := newIndexBed(t)
	b.put(b.store("secret"))
	for i := range 1000 {
		b.put(b.secret(fmt.Sprintf("es-%d", i), fmt.Sprintf("path/%d", i)))
	}
	r, _ := externalsecret.RotationOf(rotation("path/7", 2, nil))
	looked := 0
	for _, key := range r.Keys() {
		looked += len(b.Index.readers[key])
	}
	if looked != 1 {
		t.Errorf("%d are looked at, want 1", looked)
	}
	b.wantReaders("path/7", "es-7")
}

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
