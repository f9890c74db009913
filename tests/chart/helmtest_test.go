package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestHelmTestAsksEveryProgram holds what `helm test` makes: a program whose pods nobody asks could be dead.
func TestHelmTestAsksEveryProgram(t *testing.T) {
	for _, test := range []struct{ values, containers, programs string }{
		{"{}", "streams ready", "watcher actuator"},
		{"nats: {url: nats://a:4222}", "ready", "watcher actuator"},
		{"mode: single", "ready", "keyturn"},
		{everything[0], "streams ready", "watcher actuator audit"},
		{everything[2], "streams ready", "watcher actuator projector"},
	} {
		all := withTests(t, test.values)
		var names []string
		var asked any
		containers, _ := all["Pod keyturn-system/keyturn-test"].at("spec", "containers").([]any)
		for _, container := range containers {
			container := object(container.(map[string]any))
			names = append(names, fmt.Sprint(container["name"]))
			asked = container["args"]
		}
		if got := strings.Join(names, " "); got != test.containers {
			t.Errorf("with %s: the containers are %s, want %s", test.values, got, test.containers)
		}
		var want []any
		for program := range strings.FieldsSeq(test.programs) {
			name := "keyturn-" + program
			if program == "keyturn" {
				name = program
			}
			service := all["Service keyturn-system/"+name+"-ready"]
			ports, _ := service.at("spec", "ports").([]any)
			if len(ports) != 1 {
				t.Errorf("with %s: the Service of %s has the ports %v", test.values, program, ports)
				continue
			}
			want = append(want, fmt.Sprintf("%s-ready.%s.svc:%v", name, systemNamespace, object(ports[0].(map[string]any))["port"]))
			selector := map[string]any{"app.kubernetes.io/name": name}
			if diff := cmp.Diff(selector, service.at("spec", "selector")); diff != "" || service.at("spec", "publishNotReadyAddresses") != true {
				t.Errorf("with %s: the Service of %s does not have all of its pods: %v", test.values, program, service["spec"])
			}
		}
		if diff := cmp.Diff(any(want), asked); diff != "" {
			t.Errorf("with %s: asks (-want +got):\n%s", test.values, diff)
		}
	}
}

// TestWhatAFailedHelmTestLeavesCanBeRemoved holds the command of docs/how-to/install.md to what the test makes: Helm 3 leaves all of it.
func TestWhatAFailedHelmTestLeavesCanBeRemoved(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/how-to/install.md")
	_, command, _ := strings.Cut(page, "`kubectl -n keyturn-system delete ")
	command, _, _ = strings.Cut(command, "`")
	kinds, selector, _ := strings.Cut(command, " -l ")
	label, value, _ := strings.Cut(selector, "=")
	found := 0
	for name, one := range withTests(t, everything[0]) {
		isTest := one.at("metadata", "annotations", "helm.sh/hook") == "test"
		if isTest != (one.at("metadata", "labels", label) == value) {
			t.Errorf("%s: is selected by %q or is of the test, not both", name, selector)
		}
		if !isTest {
			continue
		}
		found++
		kind := strings.ToLower(strings.Fields(name)[0])
		if !strings.Contains(kinds, kind+"s") && !strings.Contains(kinds, strings.TrimSuffix(kind, "y")+"ies") {
			t.Errorf("%s: %q does not remove it", name, command)
		}
	}
	if found < 5 {
		t.Errorf("got %d objects of the test, want all", found)
	}
}
