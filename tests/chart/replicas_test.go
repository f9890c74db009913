package chart

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheNumberOfWatchersFollowsWhatTheyServeUnlessItIsSet(t *testing.T) {
	const budget = "PodDisruptionBudget keyturn-system/keyturn-watcher"
	for values, want := range map[string]int{
		"{}":                            1,
		"actuator: {replicas: 3}":       2,
		"watcher: {replicas: 2}":        2,
		"openbaoAudit: {enabled: true}": 1,
		"{watcher: {replicas: 1}, actuator: {replicas: 3}}": 1,
		"watcher: {replicas: 0}":                            0,
	} {
		o := rendered(t, values)
		if got := fmt.Sprint(o["Deployment keyturn-system/keyturn-watcher"].at("spec", "replicas")); got != fmt.Sprint(want) {
			t.Errorf("watchers with %s: got %s, want %d", values, got, want)
		}
		if got := fmt.Sprint(o[budget].at("spec", "maxUnavailable")); got != "1" {
			t.Errorf("watchers that may be evicted with %s: got %s, want 1", values, got)
		}
	}
}

// Two of three actuators are the majority without which the stream takes nothing.
func TestADisruptionLeavesTheMajorityOfThreeActuators(t *testing.T) {
	for _, test := range []struct{ name, actuators, budget, actuator, watcher string }{
		{"less than a majority", "actuator: {replicas: 3}", "minAvailable: 1", "map[maxUnavailable:1]", "map[minAvailable:1]"},
		{"half of them", "actuator: {replicas: 3}", "maxUnavailable: 50%", "map[maxUnavailable:1]", "map[maxUnavailable:50%]"},
		{"one actuator", "actuator: {replicas: 1}", "minAvailable: 1", "map[minAvailable:1]", "map[minAvailable:1]"},
		{"two that stand by", "nats: {url: nats://a:4222}", "maxUnavailable: 2", "map[maxUnavailable:2]", "map[maxUnavailable:2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all := rendered(t, "{"+test.actuators+", reloader: {podDisruptionBudget: {enabled: true, "+test.budget+"}}}")
			for program, want := range map[string]string{"actuator": test.actuator, "watcher": test.watcher} {
				budget, _ := all["PodDisruptionBudget keyturn-system/keyturn-"+program]["spec"].(map[string]any)
				delete(budget, "selector")
				if got := fmt.Sprint(budget); got != want {
					t.Errorf("budget of the %s: got %s, want %s", program, got, want)
				}
			}
		})
	}
}

func TestWhatIsStoredInThePodIsLimited(t *testing.T) {
	o := rendered(t, "nats: {storage: {ephemeral: true, size: 5Gi}}")["StatefulSet keyturn-system/keyturn-actuator"]
	if got := fmt.Sprint(o.at("spec", "template", "spec", "volumes")); !strings.Contains(got, "emptyDir:map[sizeLimit:5Gi]") {
		t.Errorf("volumes: got %s", got)
	}
	if o.at("spec", "volumeClaimTemplates") != nil {
		t.Error("there is a claim")
	}
}
