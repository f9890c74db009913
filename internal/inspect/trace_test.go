package inspect

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestATraceIsALinkOrAnID(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	trace := events.TraceContext{Parent: "00-" + id + "-00f067aa0ba902b7-01"}
	for _, test := range []struct {
		name, template, want string
		trace                events.TraceContext
	}{
		{"a link by a template", "https://traces/{traceID}", "https://traces/" + id, trace},
		{"the ID without", "", id, trace},
		{"nothing where there is no trace", "https://traces/{traceID}", "", events.TraceContext{}},
	} {
		if got := traceLink(test.trace, test.template); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
