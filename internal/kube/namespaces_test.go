package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOutsideSelectsTheOtherNamespaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ignored []string
		want    map[string]bool
	}{
		{"one is ignored", []string{"kube-system"}, map[string]bool{"shop": true, "kube-system": false}},
		{"two are ignored", []string{"kube-system", "shop"}, map[string]bool{"shop": false, "kube-system": false, "bank": true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			selector, err := fields.ParseSelector(Fields("type!=token", Outside(tt.ignored), ""))
			testkit.Must(t, err)
			for namespace, want := range tt.want {
				if got := selector.Matches(fields.Set{"metadata.namespace": namespace, "type": "Opaque"}); got != want {
					t.Errorf("%s: got %t, want %t", namespace, got, want)
				}
				if got := Includes(nil, tt.ignored, namespace); got != want {
					t.Errorf("%s: included is %t, want what the selector matches, %t", namespace, got, want)
				}
			}
		})
	}
}

func TestIgnoredNamespacesAreValidated(t *testing.T) {
	for _, tt := range []struct {
		name           string
		ignored, named []string
		want           string
	}{
		{"none", nil, []string{"shop"}, ""},
		{"what is no name", []string{"a,b!=c"}, nil, `--ignore-namespaces: "a,b!=c", want the name of a namespace`},
		{"some of named ones", []string{"dev"}, []string{"shop"}, `--ignore-namespaces: "dev", want none with --namespaces`},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantError(t, ValidateIgnored(tt.ignored, tt.named), tt.want) })
	}
}
