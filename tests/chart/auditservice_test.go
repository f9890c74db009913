package chart

import (
	"fmt"
	"testing"
)

// auditServices are the Services that receive the audit log of a store, by their component, with the value of the chart.
var auditServices = []struct{ component, value, service string }{
	{"openbao-audit", "openbaoAudit: {enabled: true}", "keyturn-audit"},
	{"openbao-socket", "openbaoSocket: {enabled: true}", "keyturn-audit-socket"},
}

// TestTheAuditOfAStoreDoesNotGoToALostNode has the manifests that keep a store from waiting for a watcher that cannot answer.
func TestTheAuditOfAStoreDoesNotGoToALostNode(t *testing.T) {
	for _, test := range auditServices {
		t.Run(test.component, func(t *testing.T) {
			leavesALostNode(t, kustomized(t, "base", test.component), test.service)
		})
	}
}

func TestTheAuditOfAStoreDoesNotGoToALostNodeWithTheChart(t *testing.T) {
	for _, test := range auditServices {
		t.Run(test.component, func(t *testing.T) {
			leavesALostNode(t, rendered(t, test.value), test.service)
		})
	}
}

func leavesALostNode(t *testing.T, all map[string]object, service string) {
	t.Helper()
	receiver := all["Service "+systemNamespace+"/"+service]
	if receiver.at("spec", "selector") == nil || receiver.at("spec", "publishNotReadyAddresses") != nil {
		t.Errorf("the Service keeps addresses of pods that are not ready: %v", receiver["spec"])
	}
	watcher := all["Deployment "+systemNamespace+"/keyturn-watcher"]
	if got := fmt.Sprint(watcher.at("spec", "replicas")); got != "2" {
		t.Errorf("watchers: got %s, want 2", got)
	}
	tolerations, _ := watcher.at("spec", "template", "spec", "tolerations").([]any)
	for _, key := range []string{"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"} {
		found := false
		for _, one := range tolerations {
			toleration := object(one.(map[string]any))
			found = found || toleration["key"] == key && toleration["effect"] == "NoExecute" && fmt.Sprint(toleration["tolerationSeconds"]) == "30"
		}
		if !found {
			t.Errorf("%s is not tolerated for 30 seconds only: %v", key, tolerations)
		}
	}
}
