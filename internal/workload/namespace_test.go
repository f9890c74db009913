package workload

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestNamespacesThatSayTheSameAreTheSame(t *testing.T) {
	window := func(text string) map[string]string { return map[string]string{AnnotationWindow: text} }
	tests := []struct {
		name string
		a, b map[string]string
		same bool
	}{
		{"nothing and an empty window", nil, window(" "), true},
		{"a hold", map[string]string{events.AnnotationHold: "moving"}, map[string]string{events.AnnotationHold: "moving"}, true},
		{"two holds", map[string]string{events.AnnotationHold: "moving"}, map[string]string{events.AnnotationHold: "a freeze"}, false},
		{"two windows", window("0 1 * * * for 3h"), window("0 2 * * * for 3h"), false},
		{"always and nothing", window("always"), nil, false},
		{"one that is not valid", window("at night"), window("at night"), true},
		{"two that are not valid", window("at night"), window("at noon"), false},
		{"one that is not valid and nothing", window("at night"), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := ReadNamespace("shop", tt.a), ReadNamespace("shop", tt.b)
			if a.Same(b) != tt.same || b.Same(a) != tt.same {
				t.Errorf("they are the same: %t, want %t", a.Same(b), tt.same)
			}
		})
	}
}
