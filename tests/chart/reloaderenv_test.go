package chart

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
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
			"KEYTURN_RELOADER":      secretKey("keyturn-reloader", "KEYTURN_RELOADER"),
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
		"ALERT_ON_RELOAD":   base64.StdEncoding.EncodeToString([]byte("true")),
		"ALERT_WEBHOOK_URL": base64.StdEncoding.EncodeToString([]byte(address)),
		"KEYTURN_RELOADER":  base64.StdEncoding.EncodeToString([]byte("on,metrics,strategy=env-vars,webhook-url=" + address)),
	}
	testkit.WantEqual(t, "Secret", want, secret)
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

func TestAWebhookIsCalledForChangedContentAlone(t *testing.T) {
	const url, end = "webhookUrl: '" + address + "'", ", want it without: "
	for values, want := range map[string]string{
		"{env: {KEYTURN_DRY_RUN: 'true'}, reloader: {" + url + "}}": "env.KEYTURN_DRY_RUN" + end + "nothing is rolled",
		"{secretStores: {enabled: true}, reloader: {" + url + "}}":  "secretStores.enabled" + end + "nothing is synced",
		"reloader: {" + url + ", reloadOnCreate: true}":             "reloader.reloadOnCreate" + end + "it is called when content changes",
		"reloader: {" + url + ", reloadOnDelete: 'true'}":           "reloader.reloadOnDelete" + end + "it is called when content changes",
		"reloader: {" + url + ", reloadOnCreate: false}":            "",
	} {
		out, err := template(t, values)
		refused := err != nil && strings.Contains(out, "reloader.webhookUrl: is set together with "+want+"\n")
		if refused == (want == "") || err != nil && strings.Contains(out, address) {
			t.Errorf("with %s: got %v, want %q in\n%s", values, err, want, out)
		}
	}
}

// TestReloadersCallsArePermitted holds what the network policies open, beside what is open anyway, to what the values call.
func TestReloadersCallsArePermitted(t *testing.T) {
	const none, anybody = "", "map[]"
	port := func(number string) string { return "map[ports:[map[port:" + number + "]]]" }
	tests := []struct{ name, values, actuator, watcher string }{
		{"nothing to call", "deployment: {env: {open: {A: b}, secret: {C: d}, existing: {mine: {E: f}}}}", none, none},
		{"a webhook with a port", "webhookUrl: 'http://user:pa@ss@w.example.com:8081/a:9/b?c=d:1'", port("8081"), none},
		{"a webhook without TLS", "webhookUrl: http://w.example.com/hook", port("80"), none},
		{"a webhook with TLS", "webhookUrl: https://w.example.com/hook", none, none},
		{"a webhook by its IPv6 address", "webhookUrl: 'https://[fd00::1]:8443/'", port("8443"), none},
		{"alerts", "deployment: {env: {open: {ALERT_ON_RELOAD: true}, secret: {ALERT_WEBHOOK_URL: 'https://c.example.com:8443'}}}", port("8443"), none},
		{"alerts that are off", "deployment: {env: {secret: {ALERT_WEBHOOK_URL: 'https://c.example.com:8443'}}}", none, none},
		{
			"alerts by a proxy of their own",
			"deployment: {env: {secret: {ALERT_ON_RELOAD: 'true', ALERT_WEBHOOK_URL: 'https://c.example.com:8443', ALERT_WEBHOOK_PROXY: 'http://p:3128'}}}",
			port("3128"), none,
		},
		{"alerts whose address is in another's Secret", "deployment: {env: {existing: {mine: {ALERT_ON_RELOAD: on, ALERT_WEBHOOK_URL: url}}}}", anybody, none},
		{"another's Secret without an address", "deployment: {env: {existing: {mine: {ALERT_ADDITIONAL_INFO: info}}}}", none, none},
		{"a proxy of both", "deployment: {env: {open: {HTTPS_PROXY: 'http://p:3128', http_proxy: 'p:3129'}}}", "map[ports:[map[port:3128] map[port:3129]]]", "map[ports:[map[port:3128] map[port:3129]]]"},
		{"its own policy", "netpol: {enabled: true}, webhookUrl: 'http://w.example.com:8081'", none, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all := rendered(t, "reloader: {"+test.values+"}")
			for program, want := range map[string]string{"watcher": test.watcher, "actuator": test.actuator} {
				policy := "NetworkPolicy keyturn-system/keyturn-" + program
				before := fmt.Sprint(rendered(t, "reloaderMode: true")[policy].at("spec", "egress"))
				var added []string
				for _, rule := range all[policy].at("spec", "egress").([]any) {
					if rule := fmt.Sprint(rule); !strings.Contains(before, rule) || rule == anybody {
						added = append(added, rule)
					}
				}
				if got := strings.Join(added, " "); got != want {
					t.Errorf("the %s may also reach %q, want %q", program, got, want)
				}
			}
		})
	}
}

// TestReloadersVariablesAreWhatTheySay has names and values that mean something else to YAML if they are not quoted.
func TestReloadersVariablesAreWhatTheySay(t *testing.T) {
	texts := []string{"yes", "1e3", "0x10", "null", "a: b", `"quoted" 'twice'`, "two\nlines\n", "# none", "{{ x }}", " spaces ", "ключ"}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			env := map[string]any{
				"open":   map[string]string{"NO": text, "ALERT_SINK": text},
				"secret": map[string]string{"Y": text},
				"field":  map[string]string{"ON": "metadata.annotations['1e3']"}, "existing": map[string]any{"1e3": map[string]string{"OFF": "0x10", "N": "1"}},
			}
			values, err := yaml.Marshal(map[string]any{"reloader": map[string]any{"deployment": map[string]any{"env": env}}})
			testkit.Must(t, err)
			all := rendered(t, string(values))
			got := variables(t, all[programs["actuator"]])
			secretKey := func(secret, key string) string { return "map[secretKeyRef:map[key:" + key + " name:" + secret + "]]" }
			for name, want := range map[string]string{
				"NO": text, "Y": secretKey("keyturn-reloader", "Y"), "OFF": secretKey("1e3", "0x10"), "N": secretKey("1e3", "1"),
				"ON": "map[fieldRef:map[fieldPath:metadata.annotations['1e3']]]",
			} {
				if got[name] != want {
					t.Errorf("%s: got %q, want %q", name, got[name], want)
				}
			}
			data := all["Secret keyturn-system/keyturn-reloader"]["data"]
			encoded := base64.StdEncoding.EncodeToString([]byte(text))
			testkit.WantEqual(t, "Secret", any(map[string]any{"Y": encoded, "ALERT_SINK": encoded}), data)
		})
	}
}

func TestAVariableThatIsThereTwiceHasOneValue(t *testing.T) {
	all := rendered(t, `reloader: {deployment: {gomaxprocsOverride: "2", env: {open: {GOMAXPROCS: "1", A: b}, secret: {A: c}, existing: {one: {A: d}, two: {A: e}}}}}`)
	got := variables(t, all[programs["actuator"]]) // It fails if one is there twice.
	if got["GOMAXPROCS"] != "2" || got["A"] != "map[secretKeyRef:map[key:e name:two]]" {
		t.Errorf("got %v", got)
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
