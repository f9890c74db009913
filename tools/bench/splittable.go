package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// splitContenders are the columns of the table that splits the bill of the control plane.
var splitContenders = []string{contenderConfined, contenderSpun, contenderWatched, contenderSilent, contenderKeyturn}

// fewestRequests is how many requests for a Deployment a line must have.
const fewestRequests = 0.05

// splitLine is a line of the table, with a figure of each of splitContenders.
type splitLine struct {
	What    string
	Figures []string
}

// splitLines returns the lines of the table, or none if it was not measured.
func (r *report) splitLines() []splitLine {
	name := way{limit: fanOutLimit}.name()
	if len(r.results.of(name+ofServers, contenderWatched)) == 0 {
		return nil
	}
	lines := []splitLine{
		r.splitLine(name+ofServers, "CPU time of the control plane", "%.1f ms"),
	}
	for _, server := range []string{build.APIServer, build.Etcd, build.ControllerManager, build.Node} {
		lines = append(lines, r.splitLine(name+ofServers+", "+server, server, "%.1f ms"))
	}
	lines = append(lines, r.splitLine(name+cpuOfPatching, "CPU time of the process that patches", "%.2f ms"))
	for _, of := range slices.Sorted(maps.Keys(r.results)) {
		request, ok := strings.CutPrefix(of, name+ofRequest)
		if ok && slices.ContainsFunc(splitContenders, func(c string) bool { return median(r.results.of(of, c)) >= fewestRequests }) {
			lines = append(lines, r.splitLine(of, "`"+request+"`", "%.2f"))
		}
	}
	return lines
}

// splitLine returns a line of medians, each with its difference to the floor.
func (r *report) splitLine(name, what, format string) splitLine {
	l := splitLine{What: what}
	floor := median(r.results.of(name, contenderConfined))
	for _, c := range splitContenders {
		value := median(r.results.of(name, c))
		text := fmt.Sprintf(format, value)
		if c != contenderConfined {
			text += fmt.Sprintf(" (%+.2f)", value-floor)
		}
		l.Figures = append(l.Figures, text)
	}
	return l
}
