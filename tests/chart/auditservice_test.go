package chart

import (
	"fmt"
	"strings"
	"testing"
)

// TestTheAuditOfAStoreDoesNotGoToALostNode has the manifests that keep a store from waiting for a watcher that cannot answer.
func TestTheAuditOfAStoreDoesNotGoToALostNode(t *testing.T) {
	all := kustomized(t, "base", "openbao-audit")
	receiver := all["Service "+systemNamespace+"/keyturn-audit"]
	if receiver.at("spec", "selector") == nil || receiver.at("spec", "publishNotReadyAddresses") != nil {
		t.Errorf("the Service keeps addresses of pods that are not ready: %v", receiver["spec"])
	}
	watcher := all["Deployment "+systemNamespace+"/keyturn-audit"]
	if got := fmt.Sprint(watcher.at("spec", "replicas")); got != "2" {
		t.Errorf("receivers: got %s, want 2", got)
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

// What listens to the network reads no Secret of the cluster, and has the keys of nothing else.
func TestTheReceiverOfAuditsHasNothingOfTheCluster(t *testing.T) {
	all := kustomized(t, "base", "secret-stores", "openbao-audit")
	if got := fmt.Sprint(all["Service "+systemNamespace+"/keyturn-audit"].at("spec", "selector")); got != "map[app.kubernetes.io/name:keyturn-audit]" {
		t.Errorf("the Service is for %s", got)
	}
	pod := object(all["Deployment "+systemNamespace+"/keyturn-audit"].at("spec", "template", "spec").(map[string]any))
	if pod["automountServiceAccountToken"] != false || pod["serviceAccountName"] != "keyturn-audit" {
		t.Errorf("its account: got %v, token %v, want its own without a token", pod["serviceAccountName"], pod["automountServiceAccountToken"])
	}
	for name, one := range all {
		if strings.Contains(name, "RoleBinding ") && strings.Contains(fmt.Sprint(one["subjects"]), "keyturn-audit") {
			t.Errorf("%s grants it something", name)
		}
	}
	text := fmt.Sprint(pod)
	for _, theirs := range []string{"keyturn-fingerprint-key", "keyturn-nats-watcher", "keyturn-nats-actuator", "keyturn-watcher-env"} {
		if strings.Contains(text, theirs) {
			t.Errorf("it has %s", theirs)
		}
	}
	if !strings.Contains(text, "audience:keyturn-audit") || strings.Count(text, "serviceAccountToken:map") != 1 {
		t.Errorf("it has a token for the API server: %s", text)
	}
	if !strings.Contains(text, "--sources= --namespaces= --namespace-selector= ") {
		t.Errorf("it watches the cluster: %s", text)
	}
	if egress := fmt.Sprint(all["NetworkPolicy "+systemNamespace+"/keyturn-audit"].at("spec", "egress")); strings.Contains(egress, "443") {
		t.Errorf("it may reach the API server: %s", egress)
	}
	for name, one := range all {
		if name != "Deployment "+systemNamespace+"/keyturn-audit" && strings.HasPrefix(name, "Deployment ") && strings.Contains(fmt.Sprint(one), "openbao") {
			t.Errorf("%s receives audits", name)
		}
	}
}
