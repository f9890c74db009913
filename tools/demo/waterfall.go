package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
)

const (
	// barWidth is how many columns of a waterfall the duration of the whole trace takes.
	barWidth = 40
	// nameWidth is how many columns the names of spans take. Longer ones are cut.
	nameWidth = 46
)

// waterfall formats a trace as a tree with one span a line: its service and name, its start after the first span, its duration, and a bar
// that shows both.
func waterfall(trace testbed.Trace) string {
	if len(trace.Spans) == 0 {
		return ""
	}
	begin := trace.Spans[0].Start
	end := begin
	services := 0
	for _, span := range trace.Spans {
		services = max(services, len(span.Service))
		if last := span.Start.Add(span.Duration); last.After(end) {
			end = last
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-*s  %-*s  %9s  %9s\n", services, "SERVICE", nameWidth, "SPAN", "START", "TOOK")
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, span := range trace.Spans {
			if span.Parent == parent {
				offset := span.Start.Sub(begin)
				fmt.Fprintf(&out, "%-*s  %-*s  %9s  %9s  %s\n", services, span.Service, nameWidth, fit(indent+title(span)),
					millis(offset), millis(span.Duration), bar(offset, span.Duration, end.Sub(begin)))
				write(span.ID, indent+"  ")
			}
		}
	}
	write("", "")
	return out.String()
}

// title returns the name of a span with its workload.
func title(span testbed.Span) string {
	for _, key := range []string{"k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.cronjob.name"} {
		if name := span.Tags[key]; name != "" {
			return span.Operation + " [" + name + "]"
		}
	}
	return span.Operation
}

func fit(name string) string {
	if len(name) <= nameWidth {
		return name
	}
	return name[:nameWidth-3] + "..."
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// bar draws the part of the whole that begins at the offset. It is at least one column wide.
func bar(offset, took, whole time.Duration) string {
	columns := func(d time.Duration) int { return int(int64(d) * barWidth / max(int64(whole), 1)) }
	first := min(columns(offset), barWidth-1)
	last := max(columns(offset+took), first+1)
	cells := slices.Repeat([]string{" "}, first)
	return strings.Join(append(cells, slices.Repeat([]string{"█"}, min(last, barWidth)-first)...), "")
}
