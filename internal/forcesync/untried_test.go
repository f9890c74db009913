package forcesync

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// untried creates an ExternalSecret that the operator has not tried to sync.
func (b *bed) untried(name, path string) {
	b.Helper()
	b.secret(name, path, "")
	b.with(func() {
		object := b.objects[types.NamespacedName{Namespace: "shop", Name: name}]
		unstructured.RemoveNestedField(object.Object, "status")
	})
}

// fail makes the operator fail to sync an ExternalSecret that it has not tried.
func (b *bed) fail(name string) {
	b.with(func() {
		b.failing[name] = true
		after := b.objects[types.NamespacedName{Namespace: "shop", Name: name}].DeepCopy()
		after.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}
		b.write(after)
	})
}

// A tenant can make the operator leave an ExternalSecret alone, and need not have a right in the store for it.
func TestAnExternalSecretThatTheOperatorLeavesAloneIsNotAsked(t *testing.T) {
	inBed(t, func(b *bed) {
		const many = 100
		for i := range many {
			b.untried(fmt.Sprintf("aaa-%d", i), "shop/db")
		}
		b.secret("db", "shop/db", "")
		b.start()
		first := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		b.want("patches", b.taken(), []string{"db " + secondVersion})
		b.want("outcomes", b.outcomes(), []string{"db completed synced"})
		if b.active != 0 {
			t.Errorf("%d slots are in use, want 0", b.active)
		}
		b.pass(4 * time.Minute)
		second := b.rotate("shop/db", 3, nil)
		b.pass(2 * time.Minute)
		b.mustSettle(first)
		if done, _ := b.isSettled(second); done {
			t.Error("a later version is not waited for")
		}
		b.pass(4 * time.Minute)
		b.mustSettle(second)
		b.want("patches", b.taken(), []string{"db main/root/secret/shop/db/3"})
		want := []string{"db completed synced"}
		for i := range many {
			want = append(want, fmt.Sprintf("aaa-%d skipped never-tried", i))
		}
		slices.Sort(want)
		b.want("outcomes", b.outcomes(), want)
		b.want("Kubernetes Events", b.warnings(), nil)
		if left := b.left(); left != "" {
			t.Errorf("something is left: %s", left)
		}
	})
}

func TestANewExternalSecretIsAskedWhenTheOperatorHasTried(t *testing.T) {
	for _, test := range []struct {
		name    string
		after   func(b *bed)
		patches []string
		outcome string
	}{
		{
			// It may have read the secret before the change.
			name:    "and has synced it",
			after:   func(b *bed) { b.queue <- types.NamespacedName{Namespace: "shop", Name: "db"} },
			patches: []string{"db " + secondVersion}, outcome: "db completed synced",
		},
		{
			name:    "and could not sync it",
			after:   func(b *bed) { b.fail("db") },
			patches: []string{"db " + secondVersion}, outcome: "db failed sync-error",
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			reads := []string{"1", "2"}
			b.read = func(types.NamespacedName) string {
				next := reads[0]
				reads = reads[1:]
				return next
			}
			b.untried("db", "shop/db")
			b.start()
			event := b.rotate("shop/db", 2, nil)
			b.pass(time.Minute)
			b.want("patches", b.taken(), nil)
			test.after(b)
			b.pass(6 * time.Minute)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.patches)
			b.want("outcomes", b.outcomes(), []string{test.outcome})
		})
	}
}

func TestWhatWasNeverSyncedIsAskedAfterAllOthers(t *testing.T) {
	inBed(t, func(b *bed) {
		const many = 20
		for i := range many {
			name := fmt.Sprintf("aaa-%02d", i)
			b.untried(name, "shop/db")
			b.fail(name)
		}
		for i := range many {
			b.secret(fmt.Sprintf("db-%02d", i), "shop/db", "")
		}
		b.start()
		event := b.rotate("shop/db", 2, nil)
		b.pass(10 * time.Minute)
		b.mustSettle(event)
		patches := b.taken()
		if len(patches) != 2*many {
			t.Fatalf("%d were asked, want %d", len(patches), 2*many)
		}
		for i, patch := range patches {
			if late := patch[:3] == "aaa"; late != (i >= many) {
				t.Errorf("patch %d: %s", i, patch)
			}
		}
	})
}
