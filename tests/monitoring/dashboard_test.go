package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// dashboard is what of a dashboard of Grafana asks for metrics.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	// Interval is the least time of a point.
	Interval    string `json:"interval"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content := testkit.ReadFile(t, "../../deploy/monitoring/keyturn.json")
	var d dashboard
	testkit.Must(t, json.Unmarshal([]byte(content), &d))
	return d
}

func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	known, d := series(t), readDashboard(t)
	for _, p := range d.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("%s: it asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, fault := range faults(target.Expr, known) {
				t.Errorf("%s: %s", p.Title, fault)
			}
		}
	}
	for _, variable := range d.Templating.List {
		if variable.Type != "query" {
			continue
		}
		metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(variable.Query, "label_values("), ")"), ", ")
		metric, _, _ = strings.Cut(metric, "{")
		if metric != "keyturn_build_info" {
			t.Errorf("variable %s: is of %s, which not every program has, so that the dashboard is empty without that one", variable.Name, metric)
		}
		if labels, ok := known[metric]; !ok || !slices.Contains(append(labels, targetLabels...), label) {
			t.Errorf("variable %s: there is no %s with a label %s", variable.Name, metric, label)
		}
	}
}

func TestTheDashboardShowsEveryMetric(t *testing.T) {
	var queries strings.Builder
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries.WriteString(target.Expr + "\n")
		}
	}
	for _, s := range sections() {
		for i := range s.table {
			name := prometheusName(t, &s.table[i])
			if !strings.HasPrefix(name, "reloader_") && !strings.Contains(queries.String(), name) {
				t.Errorf("no panel shows %s", name)
			}
		}
	}
}

func TestTheDashboardShowsOneInstallation(t *testing.T) {
	const chosen = `cluster="$cluster", namespace="$namespace"`
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			for _, selector := range matchers.FindAllString(target.Expr, -1) {
				if !strings.HasPrefix(selector, "{"+chosen) {
					t.Errorf("%s: %s does not begin with %s", p.Title, selector, chosen)
				}
			}
			if metrics, selectors := strings.Count(target.Expr, "keyturn_"), strings.Count(target.Expr, chosen); selectors < metrics {
				t.Errorf("%s: %d of its metrics are those of all installations: %s", p.Title, metrics-selectors, target.Expr)
			}
		}
	}
}

// An event an hour is a rate that nobody can read.
func TestTheDashboardCountsEvents(t *testing.T) {
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if p.FieldConfig.Defaults.Unit == "ops" || strings.Contains(target.Expr, "_total{") && strings.Contains(target.Expr, "rate(") &&
				!strings.Contains(target.Expr, "kubernetes_requests") && !strings.Contains(target.Expr, "cpu_seconds") {
				t.Errorf("%s: it asks for a rate: %s", p.Title, target.Expr)
			}
			if strings.Contains(target.Expr, "[$__interval]") && p.Interval == "" {
				t.Errorf("%s: without a least interval a bar may be shorter than the time between two scrapes", p.Title)
			}
		}
	}
}

func TestNoTwoPanelsAreInOnePlace(t *testing.T) {
	ids, places := map[int]string{}, map[string]string{}
	for _, p := range readDashboard(t).Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%s has the id of %s", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s goes over the edge", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := fmt.Sprint(p.GridPos.X+x, ",", p.GridPos.Y+y)
				if other, taken := places[place]; taken && other != p.Title {
					t.Errorf("%s is where %s is", p.Title, other)
				}
				places[place] = p.Title
			}
		}
	}
}

func TestTheQueriesOfTheDashboardAreWellFormed(t *testing.T) {
	testkit.Nightly(t)
	var queries ruleFile
	testkit.Must(t, json.Unmarshal([]byte(`{"groups": [{"name": "dashboard"}]}`), &queries))
	// What Grafana fills in before it asks.
	fill := strings.NewReplacer("$__rate_interval", "5m", "$__interval", "5m", "$namespace", "keyturn-system", "$cluster", "eu")
	for _, p := range readDashboard(t).Panels {
		for i, target := range p.Targets {
			queries.Groups[0].Rules = append(queries.Groups[0].Rules, rule{Alert: fmt.Sprint(p.Title, " ", i), Expr: fill.Replace(target.Expr)})
		}
	}
	promtool(t, queries, "check", "rules", "rules.yaml")
}

func TestTheManifestsOfMonitoringAreComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("kubectl may have to be built")
	}
	out, err := testbed.Kustomize(t.Context(), os.Stderr, "../../deploy/monitoring")
	testkit.Must(t, err)
	for _, want := range []string{
		"kind: PrometheusRule", "kind: ConfigMap", `grafana_dashboard: "1"`, "keyturn.json: |",
		"app.kubernetes.io/name: keyturn-watcher", "app.kubernetes.io/name: keyturn-actuator",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the manifests have no %s", want)
		}
	}
	for _, program := range []string{"watcher.yaml", "actuator.yaml"} {
		content := testkit.ReadFile(t, "../../deploy/programs/"+program)
		if name := strings.TrimSuffix(program, ".yaml"); !strings.Contains(content, "app.kubernetes.io/name: keyturn-"+name) ||
			!strings.Contains(content, "- name: http-prom") {
			t.Errorf("%s has not the label and the port that its PodMonitor asks for", program)
		}
	}
}
