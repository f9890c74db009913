package events

import (
	"strings"
	"testing"
)

func TestTraceContextLeadsToItsTrace(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	const template = "https://traces.example.com/trace/{traceID}?also={traceID}"
	for _, tt := range []struct {
		name, parent, template, id, link string
	}{
		{
			"the id stands wherever the template has it", "00-" + id + "-00f067aa0ba902b7-01", template,
			id, "https://traces.example.com/trace/" + id + "?also=" + id,
		},
		{"without a template there is the id and no link", "00-" + id + "-00f067aa0ba902b7-01", "", id, ""},
		{"without a trace there is neither", "", template, "", ""},
		{"what is broken is no trace", "00-" + id, template, "", ""},
		{"the id of zeros is none", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", template, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace := TraceContext{Parent: tt.parent}
			if got := trace.ID(); got != tt.id {
				t.Errorf("id: got %q, want %q", got, tt.id)
			}
			if got := trace.Link(tt.template); got != tt.link {
				t.Errorf("link: got %q, want %q", got, tt.link)
			}
		})
	}
}

func TestValidateTraceURL(t *testing.T) {
	for _, tt := range []struct{ name, template, err string }{
		{"nothing is allowed", "", ""},
		{"a page of Jaeger", "http://jaeger:16686/trace/{traceID}", ""},
		{"the id in the query", "https://grafana.example.com/explore?q={traceID}", ""},
		{"a page that is the same for every trace", "http://jaeger:16686", "has no {traceID}"},
		{"no URL", "jaeger:16686/{traceID}", "http:// or https://"},
		{"a URL without a host", "http:///trace/{traceID}", "http:// or https://"},
		{"another scheme", "file:///{traceID}", "http:// or https://"},
		{"what cannot be read", "http://jaeger:port/{traceID}", "is not a URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := ValidateTraceURL(tt.template)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
