package kinds

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

// metaOf returns metadata with the canary wherever a client may have put it.
func metaOf() metav1.ObjectMeta {
	owned := &metav1.FieldsV1{}
	owned.SetRawBytes([]byte(canary))
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5",
		Labels:      map[string]string{"value": canary},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"a":"` + canary + `"}}`},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: canary, FieldsV1: owned,
		}},
	}
}

// texts visits every string and every run of bytes that can be reached from a value, including through unexported fields.
func texts(value reflect.Value, visit func(string)) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			texts(value.Elem(), visit)
		}
	case reflect.Struct:
		for _, field := range value.Fields() {
			texts(field, visit)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			texts(key, visit)
			texts(value.MapIndex(key), visit)
		}
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			var run strings.Builder
			for i := range value.Len() {
				run.WriteByte(byte(value.Index(i).Uint()))
			}
			visit(run.String())
			return
		}
		for i := range value.Len() {
			texts(value.Index(i), visit)
		}
	case reflect.String:
		visit(value.String())
	}
}

func TestReduceKeepsFingerprintsOnly(t *testing.T) {
	ring := keyringOf(1)
	for _, tt := range []struct {
		name   string
		source Kind
		obj    any
		want   events.Source
		keys   []string
	}{
		{
			name: "of a Secret", source: secretKind{},
			obj:  &corev1.Secret{ObjectMeta: metaOf(), Data: map[string][]byte{"b": []byte(canary), "a": []byte("x" + canary)}},
			want: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, keys: []string{"a", "b"},
		},
		{
			name: "of a ConfigMap, whose text and binary keys are all alike", source: configMapKind{},
			obj: &corev1.ConfigMap{
				ObjectMeta: metaOf(),
				Data:       map[string]string{"b": canary}, BinaryData: map[string][]byte{"a": []byte(canary)},
			},
			want: events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "db"}, keys: []string{"a", "b"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reduced := heededOf(t, tt.source, ring, reloader.Default(), tt.obj)
			texts(reflect.ValueOf(reduced), func(text string) {
				if strings.Contains(text, canary) {
					t.Errorf("it keeps %q", text)
				}
			})
			if reduced.Source != tt.want || reduced.UID != "u" || reduced.ResourceVersion != "5" {
				t.Errorf("it is %v, uid %s, resourceVersion %s", reduced.Source, reduced.UID, reduced.ResourceVersion)
			}
			var names []string
			for _, print := range reduced.fingerprints[0].keys {
				names = append(names, print.name)
			}
			testkit.WantEqual(t, "keys", tt.keys, names)
			if key, err := cache.MetaNamespaceKeyFunc(reduced); err != nil || key != "shop/db" {
				t.Errorf("a reflector calls it %q: %v", key, err)
			}
		})
	}
}

func TestAnObjectOfAnotherKindIsNotReduced(t *testing.T) {
	for _, s := range sourceKinds {
		for _, obj := range []any{cache.DeletedFinalStateUnknown{Key: "shop/db"}, &corev1.Pod{}, nil} {
			if got, ok := Reduce(s, keyringOf(1), reloader.Default(), obj); ok {
				t.Errorf("%s makes %v of %v", s.Listing().Kind, got, obj)
			}
		}
	}
}

func TestReduceReadsTheAnnotationsOfTheSource(t *testing.T) {
	configured := reloader.Default()
	configured.Ignore, configured.Match = "example.org/ignore", "example.org/match"
	for _, tt := range []struct {
		name                  string
		annotations           map[string]string
		wantIgnore, wantMatch bool
		keys                  reloader.Annotations
	}{
		{"it says ignore", map[string]string{"keyturn.dev/ignore": "true"}, true, false, reloader.Default()},
		{"it says Reloader's match", map[string]string{"reloader.stakater.com/match": "true"}, false, true, reloader.Default()},
		{"it says ignore by a configured key", map[string]string{"example.org/ignore": "true"}, true, false, configured},
		{
			"it says both by keys of before",
			map[string]string{"reloader.stakater.com/ignore": "true", "reloader.stakater.com/match": "true"},
			false, false, configured,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
			got := heededOf(t, secretKind{}, keyringOf(1), tt.keys, secret)
			if got.ignore != tt.wantIgnore || got.match != tt.wantMatch {
				t.Errorf("ignore %t, match %t; want %t and %t", got.ignore, got.match, tt.wantIgnore, tt.wantMatch)
			}
		})
	}
}

func TestReduceTakesTheTimeOfTheNewestWrite(t *testing.T) {
	at := func(minute int) metav1.Time {
		return metav1.Time{Time: time.Date(2026, 3, 14, 15, minute, 0, 0, time.FixedZone("", 3600))}
	}
	for created, want := range map[int]int{1: 5, 9: 9} {
		meta, first, last := metav1.ObjectMeta{CreationTimestamp: at(created)}, at(3), at(5)
		meta.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &last}, {}, {Time: &first}}
		got := newObject(keyringOf(1), events.KindSecret, &meta, nil).written()
		if wanted := at(want).UTC(); !got.Equal(wanted) || got.Location() != time.UTC {
			t.Errorf("time %s, want %s", got, wanted)
		}
	}
	if got := newObject(keyringOf(1), events.KindSecret, &metav1.ObjectMeta{}, nil).written(); !got.IsZero() {
		t.Errorf("time %s, want none", got)
	}
}

func TestTheManifestsThatGrantAPermissionExist(t *testing.T) {
	for _, kind := range sourceKinds {
		if _, err := os.Stat("../../../" + kind.Listing().Grant); err != nil {
			t.Error(err)
		}
	}
}
