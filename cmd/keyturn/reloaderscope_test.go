package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestASelectorMayHaveReloadersForms(t *testing.T) {
	for _, tt := range []struct {
		name  string
		items []string
		want  string
	}{
		{"no items", nil, ""},
		{"a requirement", []string{"team=shop"}, "team=shop"},
		{"a key and a value", []string{"team:shop"}, "team=shop"},
		{"a key with any value", []string{"team:*"}, "team"},
		{"any value after an equals sign", []string{"team=*"}, "team"},
		{"a key alone", []string{"team"}, "team"},
		{"several", []string{"team:shop", "stage", "tier!=web"}, "team=shop,stage,tier!=web"},
		{"a set, which the flag has split at its comma", []string{"stage in (test", "prod)"}, "stage in (test,prod)"},
		{"a key with a prefix", []string{"example.com/team:shop"}, "example.com/team=shop"},
		{"several in one item, as Reloader's chart quotes them", []string{"team=shop,stage in (test,prod)"}, "team=shop,stage in (test,prod)"},
		{"several in one item in the old forms", []string{"team:shop,stage:*,tier=*", "a=b"}, "team=shop,stage,tier,a=b"},
		{"an empty value", []string{"team:"}, "team="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseSelector(tt.items)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestASelectorThatIsNoneIsRefused(t *testing.T) {
	for _, item := range []string{"a:b:c", "team!=*", "team==*", "=shop", ":*", "team=shop web", "()", "stage in (test"} {
		if got, err := parseSelector([]string{item}); err == nil {
			t.Errorf("%q: got %q, want an error", item, got)
		}
	}
}

// FuzzParseSelector checks that what is accepted is a label selector, and that a label selector of Kubernetes is accepted as it is, unless it
// has a character of Reloader's forms.
func FuzzParseSelector(f *testing.F) {
	for _, text := range []string{"", "team:shop", "team:*", "a=*,b", "stage in (test,prod)", "a!=b", "x/y=z", "a:b:c", "!a", "a==b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items := strings.Split(text, ",")
		got, err := parseSelector(items)
		if err == nil {
			if _, err := labels.Parse(got); err != nil {
				t.Errorf("%q: accepted as %q, which is no label selector: %v", text, got, err)
			}
		}
		if _, invalid := labels.Parse(text); invalid == nil && !strings.ContainsAny(text, ":*") && (err != nil || got != text) {
			t.Errorf("%q: got %q, %v, want it as it is", text, got, err)
		}
	})
}
