package monitoring

import (
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
	"github.com/keyturn/keyturn/tests/testkit/docpages"
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
	content := testkit.ReadFile(t, alertsFile)
	var resource struct {
		Spec ruleFile `json:"spec"`
	}
	testkit.Must(t, yaml.Unmarshal([]byte(content), &resource))
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
	content := testkit.ReadFile(t, "../../docs/operate/alerts.md")
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(content, -1) {
		sections[heading[1]] = true
	}
	for _, alert := range alerts(t) {
		if !sections[alert.Alert] {
			t.Errorf("docs/operate/alerts.md has no section %s", alert.Alert)
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
		want := "https://github.com/keyturn/keyturn/blob/main/docs/operate/alerts.md#" + strings.ToLower(alert.Alert)
		if got := alert.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: runbook_url is %q, want %q", alert.Alert, got, want)
		}
	}
	for section := range sections {
		t.Errorf("docs/operate/alerts.md has a section %s, and there is no such alert", section)
	}
}

// maxWords bounds the page, which is for people who were woken.
const maxWords = 2300

// TestARunbookCanBeFollowedAtNight holds each runbook to its form: what the alert means and costs, commands that work as they stand, the fix, and
// what to do without it.
func TestARunbookCanBeFollowedAtNight(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/operate/alerts.md")
	if words := len(strings.Fields(page)); words > maxWords {
		t.Errorf("the page has %d words, want at most %d", words, maxWords)
	}
	severities := map[string]string{}
	for _, alert := range alerts(t) {
		severities[alert.Alert] = alert.Labels["severity"]
	}
	placeholder := regexp.MustCompile(`\b(?:NAME|NAMESPACE|POD|WORKLOAD|CLUSTER)\b|[<>]`)
	for _, section := range strings.Split(page, "\n## ")[1:] {
		alert, text, _ := strings.Cut(section, "\n")
		for _, part := range []string{"`" + severities[alert] + "` **Meaning:** ", "\n**Impact:** ", "\n**Fix", "\n**If that is not possible"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: has no %q", alert, part)
			}
		}
		commands := 0
		for _, command := range docpages.Commands(text) {
			if command.Inline {
				continue
			}
			commands++
			if !strings.HasPrefix(command.Line, "kubectl ") || placeholder.MatchString(command.Line) {
				t.Errorf("%s: %q does not work as it stands", alert, command.Line)
			}
		}
		if commands < 1 || commands > 3 {
			t.Errorf("%s: has %d commands, want one to three", alert, commands)
		}
	}
}

// promtool runs promtool on the rules, written as Prometheus reads them.
func promtool(t *testing.T, rules ruleFile, args ...string) {
	t.Helper()
	content, err := yaml.Marshal(rules)
	testkit.Must(t, err)
	dir := t.TempDir()
	testkit.WriteFile(t, filepath.Join(dir, "rules.yaml"), content)
	testkit.WriteFile(t, filepath.Join(dir, "alerts.yaml"), testkit.ReadFile(t, "testdata/alerts.yaml"))
	cmd := exec.CommandContext(t.Context(), build.Tool(t, build.Promtool), args...)
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
	content := testkit.ReadFile(t, "testdata/alerts.yaml")
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name  string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	testkit.Must(t, yaml.Unmarshal([]byte(content), &file))
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
