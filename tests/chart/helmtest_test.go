package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHelmTestAsksEveryProgram holds what `helm test` makes: a program whose pods nobody asks could be dead.
func TestHelmTestAsksEveryProgram(t *testing.T) {
	for _, test := range []struct{ values, containers, programs string }{
		{"{}", "streams ready", "watcher actuator"},
		{"{nats: {url: nats://a:4222}, ports: {health: 9999}}", "ready", "watcher actuator"},
		{everything[0], "streams ready", "watcher actuator audit"},
		{everything[2], "streams ready", "watcher actuator projector"},
	} {
		out, err := helm(t, test.values, "template", "keyturn", folder, "--namespace", systemNamespace)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := objects(t, out)
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
			service := all["Service keyturn-system/keyturn-"+program+"-ready"]
			ports, _ := service.at("spec", "ports").([]any)
			if len(ports) != 1 {
				t.Errorf("with %s: the Service of %s has the ports %v", test.values, program, ports)
				continue
			}
			want = append(want, fmt.Sprintf("keyturn-%s-ready.%s.svc:%v", program, systemNamespace, object(ports[0].(map[string]any))["port"]))
			selector := map[string]any{"app.kubernetes.io/name": "keyturn-" + program}
			if diff := cmp.Diff(selector, service.at("spec", "selector")); diff != "" || service.at("spec", "publishNotReadyAddresses") != true {
				t.Errorf("with %s: the Service of %s does not have all of its pods: %v", test.values, program, service["spec"])
			}
		}
		if diff := cmp.Diff(any(want), asked); diff != "" {
			t.Errorf("with %s: asks (-want +got):\n%s", test.values, diff)
		}
	}
}
