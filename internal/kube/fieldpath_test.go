package kube

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

func object(t testing.TB) any {
	t.Helper()
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"example.org/a": "b"}},
		"spec": map[string]any{
			"replicas": int64(3), "paused": true, "ratio": 0.5, "nothing": nil, "secrets": []any{"db", "tls", int64(1), map[string]any{}},
			"volumes": []any{map[string]any{"name": "a", "secret": map[string]any{"secretName": "db"}}, map[string]any{"name": "b"}, "no volume"},
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True"},
			map[string]any{"type": "Stalled", "status": "False"},
		}},
	}
}

func TestAPathFindsFields(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		want       []string
	}{
		{"a number", "spec.replicas", []string{"3"}},
		{"a name in quotes", "metadata.annotations['example.org/a']", []string{"b"}},
		{"all elements that are texts", "spec.secrets[*]", []string{"db", "tls", "1"}},
		{"a field of all elements that have it", "spec.volumes[*].secret.secretName", []string{"db"}},
		{"the elements with a field of a text", `status.conditions[?(@.type=="Ready")].status`, []string{"True"}},
		{"no element has the text", `status.conditions[?(@.type=="Gone")].status`, nil},
		{"a field that is missing", "spec.missing.more", nil},
		{"what is no text", "spec", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParseFieldPath(tt.path)
			testkit.Must(t, err)
			if diff := cmp.Diff(tt.want, p.Texts(object(t))); diff != "" {
				t.Error(diff)
			}
			first, found := p.Text(object(t))
			if found != (len(tt.want) > 0) || found && first != tt.want[0] {
				t.Errorf("the first: got %q, %t, want the first of %q", first, found, tt.want)
			}
			if p.String() != tt.path {
				t.Errorf("as text: got %s, want %s", p, tt.path)
			}
		})
	}
}

func TestAPathIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		want       error
	}{
		{"nothing", "", errEmpty},
		{"a root", "$.spec", errName},
		{"a dot in front", ".spec", errName},
		{"a name with a slash", "metadata.annotations.a/b", errName},
		{"an index", "spec.secrets[0]", errIndex},
		{"brackets that are left open", "spec.secrets[*", errIndex},
		{"a path in a condition", `status.conditions[?(@.a.b=="Ready")]`, errIndex},
		{"what follows brackets", "spec['a']b", errName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseFieldPath(tt.path); err != tt.want { //nolint:errorlint // The very one.
				t.Errorf("%s: got %v, want %v", tt.path, err, tt.want)
			}
		})
	}
}

func TestAPathIsBounded(t *testing.T) {
	long, deep := make([]byte, maxLength+1), "a"
	for i := range long {
		long[i] = 'a'
	}
	for range maxSteps {
		deep += ".a"
	}
	for name, path := range map[string]string{"long": string(long), "deep": deep} {
		if _, err := ParseFieldPath(path); err == nil {
			t.Errorf("a path that is too %s: got no error", name)
		}
	}
}

func TestAPathOfNamesIsAPointer(t *testing.T) {
	p, err := ParseFieldPath("metadata.annotations['a~b/c']")
	testkit.Must(t, err)
	names, plain := p.Names()
	if pointer := JSONPointer(names...); pointer != "/metadata/annotations/a~0b~1c" || !plain {
		t.Errorf("got %s, %t", pointer, plain)
	}
	through, err := ParseFieldPath("spec.secrets[*]")
	testkit.Must(t, err)
	if names, plain := through.Names(); plain {
		t.Errorf("a path through a list: got the names %q", names)
	}
}

func FuzzParseFieldPath(f *testing.F) {
	for _, path := range []string{
		"spec.replicas", "metadata.annotations['example.org/a']", "spec.volumes[*].secret.secretName",
		`status.conditions[?(@.type=="Ready")].status`, "a[*][*]", "a['b']['c'].d", "[", "a[?(@.b==\"", "\x00",
	} {
		f.Add(path, `{"a":[[{"b":"c"}]],"spec":{"volumes":[{"secret":null}]}}`)
	}
	f.Fuzz(func(t *testing.T, path, document string) {
		p, err := ParseFieldPath(path)
		if err != nil {
			return
		}
		if p.Empty() || len(p.steps) > maxSteps {
			t.Fatalf("%q: got %d steps", path, len(p.steps))
		}
		var object any
		if json.Unmarshal([]byte(document), &object) == nil {
			p.Texts(object)
		}
		names, plain := p.Names()
		if plain && len(names) == 0 {
			t.Fatalf("%q: got no names", path)
		}
		if parts := strings.Split(JSONPointer(names...), "/"); plain && len(parts) != len(names)+1 {
			t.Fatalf("%q: the pointer of %q has %d parts", path, names, len(parts)-1)
		}
	})
}
