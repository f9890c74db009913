package project

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// testStore is the store of the widgets of a namespace, with its index.
type testStore struct {
	cache.TransformingStore
	index *index
}

func testIndex(t *testing.T) (*testStore, *[]key) {
	t.Helper()
	kinds, err := parseConfig([]byte(widgets))
	testkit.Must(t, err)
	digests, err := newDigests(rand.Reader)
	testkit.Must(t, err)
	var due []key
	x := newIndex(digests, func(k key) { due = append(due, k) })
	s := &sink{index: x, kind: kinds[0], namespace: "shop", listed: func() {}}
	return &testStore{kube.StoreOf[*target](t.Context(), s), x}, &due
}

// widget is one whose password the projector has applied.
func widget(name, wants, password string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"auth": map[string]any{"password": password}}}}
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetUID("uid-of-" + "it")
	object.SetResourceVersion("7")
	if wants != "" {
		object.SetAnnotations(map[string]string{annotation: wants})
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "someone", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)},
		{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)},
		{
			Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:auth":{".":{},"f:password":{}},"f:a~b/c":{}}}`),
		},
	})
	return object
}

func TestOfAResourceNoValueIsKept(t *testing.T) {
	const wants, value = "spec.auth.password=secret/db/password", "s3cret-of-the-field"
	s, _ := testIndex(t)
	kept, err := s.Transformer()(widget("main", wants, value))
	testkit.Must(t, err)
	read, ok := kept.(*target)
	if !ok {
		t.Fatalf("got %T, want what is kept of it", kept)
	}
	if bytes.Contains(fmt.Appendf(nil, "%+v", *read), []byte(value)) {
		t.Error("what is kept of a resource has the value of its field")
	}
	testkit.WantEqual(t, "the fields of the projector", []string{"/spec/auth/password", "/spec/a~0b~1c"}, read.owned)
	if len(read.shared) > 0 {
		t.Errorf("the fields that another manager owns, too: got %q, want none", read.shared)
	}
	same := s.index.digests.of(read.wishes, []string{value})
	other := s.index.digests.of(read.wishes, []string{value + "2"})
	if read.state != same || same == other || same == (digest{}) {
		t.Error("the digest does not tell the value from another")
	}
	another, _ := testIndex(t)
	if another.index.digests.of(read.wishes, []string{value}) == same {
		t.Error("two processes have the same digest of a value")
	}
}

func TestAResourceIsDueWhenWhatItWantsOrHasIsAnother(t *testing.T) {
	const wants = "spec.auth.password=secret/db/password"
	s, due := testIndex(t)
	step := func(what string, want int, do func() error) {
		t.Helper()
		*due = nil
		testkit.Must(t, do())
		if len(*due) != want {
			t.Errorf("%s: due %d times, want %d", what, len(*due), want)
		}
	}
	free := widget("free", "", "a")
	free.SetManagedFields(nil)
	step("the first list", 1, func() error { return s.Replace([]any{widget("main", wants, "a"), free}, "1") })
	step("a write of something else", 0, func() error {
		object := widget("main", wants, "a")
		object.SetResourceVersion("8")
		return s.Update(object)
	})
	step("another value", 1, func() error { return s.Update(widget("main", wants, "b")) })
	step("another annotation", 1, func() error { return s.Update(widget("main", wants+";", "b")) })
	step("another owner", 1, func() error {
		object := widget("main", wants+";", "b")
		object.SetManagedFields(nil)
		return s.Update(object)
	})
	step("one more owner of the field", 1, func() error {
		object := widget("main", wants+";", "b")
		object.SetManagedFields(append(object.GetManagedFields(), another...))
		return s.Update(object)
	})
	step("the same again, with one of another field", 0, func() error {
		object := widget("main", wants+";", "b")
		other := metav1.ManagedFieldsEntry{Manager: "operator", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:auth":{".":{},"f:user":{}}}}`)}
		object.SetManagedFields(append(append(object.GetManagedFields(), another...), other))
		return s.Update(object)
	})
	step("one that wants nothing", 0, func() error { return s.Update(free) })
	if s.index.get(key{kind: "widget", namespace: "shop", name: "free"}) != nil {
		t.Error("a resource that wants nothing and has nothing is kept")
	}
	step("what the projector itself has written", 0, func() error {
		before := s.index.get(key{kind: "widget", namespace: "shop", name: "main"})
		s.index.wrote(before, widget("main", wants+";", "c"))
		s.index.wrote(before, widget("main", wants+";", "of before the watch")) // it is not what is known any more
		return s.Update(widget("main", wants+";", "c"))
	})
	step("it has gone", 1, func() error { return s.Delete(widget("main", wants, "b")) })
	step("a list without one that was there", 2, func() error {
		if err := s.Add(widget("main", wants, "b")); err != nil {
			return err
		}
		return s.Replace(nil, "2")
	})
}

// another are the fields of who has created the widget.
var another = []metav1.ManagedFieldsEntry{{
	Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:auth":{"f:password":{}}}}`),
}}

func TestAnotherOwnerOfAFieldIsToldBeforeThereIsAConflict(t *testing.T) {
	b := newBench(t)
	due := 0
	b.index.changed = func(key) { due++ }
	b.secret("a")
	created := equal("a")
	created.SetManagedFields(another)
	testkit.Must(t, b.store.Update(created))
	b.shared = true
	b.steps(1)
	if due != 2 || b.applied != 1 {
		t.Errorf("due %d times, written %d times, want twice, the second time for the write of the same value", due, b.applied)
	}
	b.steps(3)
	b.reports("shared")
	for _, told := range b.bus.has {
		if told.Verb != events.VerbFailed || !strings.HasPrefix(told.Message, "Another field manager owns spec.auth.password, too:") {
			t.Errorf("got %s: %s", told.Verb, told.Message)
		}
	}
	b.wroteEvents(1)
	b.add(b.main, testCause())
	b.steps(1)
	b.reports("shared", "shared") // for the change of the Secret
	b.sees(wantsDB, "a")
	if due != 3 {
		t.Errorf("due %d times, want once more when the other one gives the field up", due)
	}
	b.steps(2)
	b.reports("shared", "shared", "recovered")
	if b.applied != 1 {
		t.Errorf("written %d times, want once", b.applied)
	}
}
