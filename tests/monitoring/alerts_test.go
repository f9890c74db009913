package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

const alertsFile = "../../deploy/monitoring/alerts.yaml"

// ruleFile is a rule file of Prometheus, and the spec of a PrometheusRule.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

// rule is an alert, or a query whose result is recorded as a series.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func readRules(t *testing.T) ruleFile {
	t.Helper()
	content, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var resource struct {
		Spec ruleFile `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &resource); err != nil {
		t.Fatal(err)
	}
	return resource.Spec
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	for _, group := range readRules(t).Groups {
		rules = append(rules, slices.DeleteFunc(group.Rules, func(r rule) bool { return r.Alert == "" })...)
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no rules", alertsFile)
	}
	return rules
}

func TestAlertsAreOnWhatThereIs(t *testing.T) {
	known := series(t)
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			for _, fault := range faults(rule.Expr, known) {
				t.Errorf("%s%s: %s", rule.Alert, rule.Record, fault)
			}
			if rule.Record != "" {
				known[rule.Record] = nil // the rules after it may ask for it
			}
		}
	}
}

// Reloader counts what it skips. What Keyturn counts has every decision.
func TestEveryReasonToSkipIsRecordedAsReloaderDoes(t *testing.T) {
	var reasons []string
	for _, reason := range plan.Reasons() {
		if reason.Action() == plan.Skip && !slices.Contains(reasons, reason.String()) {
			reasons = append(reasons, reason.String())
		}
	}
	want := `keyturn_decisions_total{reason=~"` + strings.Join(reasons, "|") + `"}`
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if rule.Record == "reloader_skipped_total" && !strings.HasPrefix(rule.Expr, want) {
				t.Errorf("%s: got %s, want %s", rule.Record, rule.Expr, want)
			}
		}
	}
}

func TestAlertsSayWhatTheyMeanAndWhatToDo(t *testing.T) {
	content, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(content), -1) {
		sections[heading[1]] = true
	}
	for _, alert := range alerts(t) {
		if !sections[alert.Alert] {
			t.Errorf("docs/alerts.md has no section %s", alert.Alert)
		}
		delete(sections, alert.Alert)
		if alert.Labels["severity"] != "critical" && alert.Labels["severity"] != "warning" {
			t.Errorf("%s: severity is %q", alert.Alert, alert.Labels["severity"])
		}
		for _, name := range []string{"summary", "description"} {
			if !strings.HasSuffix(alert.Annotations[name], ".") {
				t.Errorf("%s: %s is no sentence: %q", alert.Alert, name, alert.Annotations[name])
			}
		}
		want := "https://github.com/keyturn/keyturn/blob/main/docs/alerts.md#" + strings.ToLower(alert.Alert)
		if got := alert.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: runbook_url is %q, want %q", alert.Alert, got, want)
		}
	}
	for section := range sections {
		t.Errorf("docs/alerts.md has a section %s, and there is no such alert", section)
	}
}

// promtool runs promtool on the rules, written as Prometheus reads them.
func promtool(t *testing.T, rules ruleFile, args ...string) {
	t.Helper()
	binary, err := build.Binary(t.Context(), os.Stderr, build.Promtool)
	if err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "alerts.yaml"), tests, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	testkit.Nightly(t)
	rules := readRules(t)
	promtool(t, rules, "check", "rules", "--lint-fatal", "rules.yaml")
	// promtool wants every annotation of every alert to the letter. That their templates are right it has just checked.
	for _, group := range rules.Groups {
		for i := range group.Rules {
			group.Rules[i].Annotations = nil
		}
	}
	promtool(t, rules, "test", "rules", "alerts.yaml")
}

func TestEveryAlertIsTested(t *testing.T) {
	content, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name  string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, alert := range test.Alerts {
			if len(alert.Fires) > 0 {
				fires[alert.Name] = true
			} else {
				silent[alert.Name] = true
			}
		}
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] || !silent[alert.Alert] {
			t.Errorf("%s: is tested to fire: %t, to be silent: %t", alert.Alert, fires[alert.Alert], silent[alert.Alert])
		}
	}
}
