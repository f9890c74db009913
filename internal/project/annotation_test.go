package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheAnnotationSaysWhichFieldsHaveWhichKeys(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // pointer, Secret and key
		err        string
	}{
		{name: "one", text: "spec.auth.password=secret/db/password", want: []string{"/spec/auth/password db password"}},
		{
			name: "several, with space and one more semicolon", text: " spec.a = secret/db.v2/A_b.c ;\n spec['b=c'].d=secret/db/user; ",
			want: []string{"/spec/a db.v2 A_b.c", "/spec/b=c/d db user"},
		},
		{name: "too many", text: strings.Repeat("spec.a=secret/db/k;", 17), err: "has 17 fields, want 1 to 16"},
		{name: "another kind of source", text: "spec.a=configmap/db/k", err: "field 1 is not <path>=secret/<name>/<key>"},
		{name: "a path that is none", text: "spec..a=secret/db/k", err: "field 1 a name has letters, digits, - and _; others are written as ['name']"},
		{name: "metadata", text: "metadata.labels.a=secret/db/k", err: "field 1 is not a field below spec, or goes through a list"},
		{name: "a list", text: "spec.a[*]=secret/db/k", err: "field 1 is not a field below spec, or goes through a list"},
		{name: "one in another", text: "spec.a.b=secret/db/k;spec.a=secret/db/l", err: "field 2 is that of another one, or contains it, or is in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wishes, err := parseWishes(tt.text)
			if tt.err != "" {
				testkit.WantError(t, err, tt.err)
				return
			}
			var got []string
			for _, w := range wishes {
				got = append(got, w.pointer+" "+w.secret+" "+w.key)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzParseWishes(f *testing.F) {
	for _, text := range []string{
		"spec.auth.password=secret/db/password", "spec['b=c'].d=secret/db/user; ", ";", "spec.a=secret/db/k;spec['a']=secret/db/l", "=", "spec.a[*]=secret/db/k",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		wishes, err := parseWishes(text)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Fatalf("the error quotes what it was given: %v", err)
			}
			return
		}
		if len(wishes) == 0 || len(wishes) > maxWishes {
			t.Fatalf("%q: got %d fields", text, len(wishes))
		}
		for i, w := range wishes {
			if !strings.HasPrefix(w.pointer, "/spec/") || len(w.names) < 2 || w.secret == "" || w.key == "" {
				t.Fatalf("%q: got the field %q of %s/%s", text, w.pointer, w.secret, w.key)
			}
			for _, other := range wishes[:i] {
				if overlap(w.pointer, other.pointer) {
					t.Fatalf("%q: %s and %s overlap", text, w.pointer, other.pointer)
				}
			}
		}
	})
}
