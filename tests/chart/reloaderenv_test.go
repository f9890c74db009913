package chart

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// address is that of a webhook, which is a password.
const address = "https://chat.example.com/hook"

// reloaderCalls are Reloader's values with everything that makes it call somebody.
const reloaderCalls = `reloader: {webhookUrl: '` + address + `', deployment: {env: {
	open: {ALERT_ON_RELOAD: 'true', ALERT_SINK: '', HTTPS_PROXY: 'http://proxy:3128'}, secret: {ALERT_WEBHOOK_URL: '` + address + `'},
	existing: {mine: {ALERT_ADDITIONAL_INFO: info}}, field: {NODE: spec.nodeName, POD_NAME: metadata.name}}}}`

func TestReloadersAlertsAreTheActuators(t *testing.T) {
	all := rendered(t, reloaderCalls)
	secretKey := func(secret, key string) string { return "map[secretKeyRef:map[key:" + key + " name:" + secret + "]]" }
	for program, want := range map[string]map[string]string{
		"watcher": {"HTTPS_PROXY": "http://proxy:3128", "NODE": "map[fieldRef:map[fieldPath:spec.nodeName]]"},
		"actuator": {
			"HTTPS_PROXY": "http://proxy:3128", "NODE": "map[fieldRef:map[fieldPath:spec.nodeName]]",
			"ALERT_ON_RELOAD":       secretKey("keyturn-reloader", "ALERT_ON_RELOAD"),
			"ALERT_WEBHOOK_URL":     secretKey("keyturn-reloader", "ALERT_WEBHOOK_URL"),
			"KEYTURN_WEBHOOK_URL":   secretKey("keyturn-reloader", "KEYTURN_WEBHOOK_URL"),
			"ALERT_ADDITIONAL_INFO": secretKey("mine", "info"),
		},
	} {
		got := variables(t, all[programs[program]])
		for name := range variables(t, rendered(t, "{}")[programs[program]]) {
			delete(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("variables of the %s (-want +got):\n%s", program, diff)
		}
	}
	secret, _ := all["Secret keyturn-system/keyturn-reloader"]["data"].(map[string]any)
	want := map[string]any{
		"ALERT_ON_RELOAD":     base64.StdEncoding.EncodeToString([]byte("true")),
		"ALERT_WEBHOOK_URL":   base64.StdEncoding.EncodeToString([]byte(address)),
		"KEYTURN_WEBHOOK_URL": base64.StdEncoding.EncodeToString([]byte(address)),
	}
	if diff := cmp.Diff(want, secret); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
}

// variables are those of the only container of a program, by name.
func variables(t *testing.T, program object) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, container := range program.at("spec", "template", "spec", "containers").([]any) {
		for _, variable := range object(container.(map[string]any)).at("env").([]any) {
			variable := object(variable.(map[string]any))
			name := fmt.Sprint(variable["name"])
			if _, twice := all[name]; twice {
				t.Errorf("%s is there twice", name)
			}
			value := variable["value"]
			if value == nil {
				value = variable["valueFrom"]
			}
			all[name] = fmt.Sprint(value)
		}
	}
	return all
}

func TestAnAddressIsInTheSecretAlone(t *testing.T) {
	for name, object := range rendered(t, reloaderCalls) {
		if text := fmt.Sprint(object); strings.Contains(text, address) || strings.Contains(text, "chat.example.com") {
			t.Errorf("%s has it", name)
		}
	}
}

func TestAWrongTypeOfAnAddressIsNotPrinted(t *testing.T) {
	for _, values := range []string{
		"webhookUrl: ['" + address + "']", "deployment: {env: '" + address + "'}", "deployment: {env: {secret: ['" + address + "']}}",
		"deployment: {env: {existing: {mine: '" + address + "'}}}", "deployment: ['" + address + "']", "custom_annotations: '" + address + "'",
	} {
		out, err := template(t, "reloader: {"+values+"}")
		if err == nil || strings.Contains(out, "chat.example.com") {
			t.Errorf("with %s: got %v and\n%s", values, err, out)
		}
	}
}

func TestReloadersWebhookIsReachedAtAnyPortUnlessItsPolicySaysOtherwise(t *testing.T) {
	for values, want := range map[string]bool{
		reloaderCalls:        true,
		"reloaderMode: true": false,
		strings.Replace(reloaderCalls, "{webhookUrl", "{netpol: {enabled: true}, webhookUrl", 1): false,
	} {
		for program, may := range map[string]bool{"watcher": false, "actuator": want} {
			policy := rendered(t, values)["NetworkPolicy keyturn-system/keyturn-"+program]
			if got := strings.HasPrefix(fmt.Sprint(policy.at("spec", "egress")), "[map[] "); got != may {
				t.Errorf("the %s may call anybody with %s: got %t, want %t", program, values, got, may)
			}
		}
	}
}

func TestAnUpgradeReplacesAnActuatorWithASecret(t *testing.T) {
	for values, want := range map[string]any{reloaderCalls: "1", "reloaderMode: true": nil} {
		actuator := rendered(t, values)[programs["actuator"]]
		if got := actuator.at("spec", "template", "metadata", "annotations", "helm.sh/revision"); got != want {
			t.Errorf("with %s: got revision %v, want %v", values, got, want)
		}
	}
}
