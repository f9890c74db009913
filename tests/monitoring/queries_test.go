package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/keyturn/keyturn/tests/testkit"
)

// targetLabels are what Prometheus puts on every series of a PodMonitor, and the external label of one among several.
var targetLabels = []string{"cluster", "job", "namespace", "pod", "container", "instance", "endpoint"}

// series returns the labels of each possible series, without those of the target.
func series(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{"up": nil}
	for _, s := range sections() {
		for i := range s.table {
			name, labels := prometheusName(t, &s.table[i]), prometheusLabels(t, &s.table[i])
			if s.table[i].Histogram == nil {
				known[name] = append(known[name], labels...)
				continue
			}
			known[name+"_bucket"] = append(labels, "le")
			known[name+"_sum"], known[name+"_count"] = labels, labels
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	testkit.Must(t, err)
	for _, family := range families {
		known[family.GetName()] = nil
	}
	return known
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	matchers = regexp.MustCompile(`\{[^}]*\}`)
	matcher  = regexp.MustCompile(`([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	duration = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\w+|\b\d[\w.]*`)
	word     = regexp.MustCompile(`\$?[a-zA-Z_:][\w:]*`)
)

// words that are neither a metric nor a label.
var keywords = []string{
	"sum", "max", "min", "count", "by", "without", "on", "ignoring", "or", "and", "unless", "bool", "rate", "increase", "absent", "changes",
	"max_over_time", "min_over_time",
	"time", "histogram_quantile", "clamp_min", "vector", "label_values", "label_replace",
}

// faults returns what a query names that does not exist.
func faults(query string, known map[string][]string) []string {
	var found []string
	query = quoted.ReplaceAllString(query, `""`)
	var labels []string
	for _, selector := range matchers.FindAllString(query, -1) {
		for _, match := range matcher.FindAllStringSubmatch(selector, -1) {
			labels = append(labels, match[1])
		}
	}
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		labels = append(labels, word.FindAllString(group[1], -1)...)
	}
	rest := duration.ReplaceAllString(grouping.ReplaceAllString(matchers.ReplaceAllString(query, ""), ""), "")
	allowed := slices.Clone(targetLabels)
	named := false
	for _, name := range word.FindAllString(rest, -1) {
		if slices.Contains(keywords, name) {
			continue
		}
		has, ok := known[name]
		if !ok {
			found = append(found, "there is no metric "+name)
			continue
		}
		named = true
		allowed = append(allowed, has...)
	}
	if !named {
		found = append(found, "it names no metric")
	}
	for _, label := range labels {
		if !slices.Contains(allowed, label) {
			found = append(found, "none of its metrics has a label "+label)
		}
	}
	return found
}

func TestAQueryOfWhatThereIsNotIsFound(t *testing.T) {
	known := map[string][]string{"a_total": {"reason"}, "b_bucket": {"le"}}
	for _, tt := range []struct{ name, query, want string }{
		{"what there is", `sum by (namespace, reason) (rate(a_total{reason!="x", job=~"y|z"}[5m])) > 0`, ""},
		{"a metric that is not", `rate(c_total[5m]) / a_total`, "there is no metric c_total"},
		{"a label that is not", `a_total{kind="x"}`, "none of its metrics has a label kind"},
		{"a group that is not", `sum by (kind) (a_total offset 5m)`, "none of its metrics has a label kind"},
		{"nothing", `vector(1)`, "it names no metric"},
		{"a word in quotes is none", `a_total{reason="c_total"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(faults(tt.query, known), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
