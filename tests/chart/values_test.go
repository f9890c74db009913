package chart

import (
	"fmt"
	"strings"
	"testing"
)

// mistakes are invalid values, each with the error it must cause.
var mistakes = []struct {
	name, values string
	want         []string
}{
	{"a value that there is none of", "watchGlobaly: true", []string{"watchGlobaly", "not allowed"}},
	{"a cluster that is no DNS label", "cluster: Prod_1", []string{"/cluster", "Prod_1"}},
	{"more watchers than there is a use for", "watcher: {replicas: 3}", []string{"/watcher/replicas", "maximum"}},
	{"two actuators, which have no majority", "actuator: {replicas: 2}", []string{"/actuator/replicas", "1, 3"}},
	{"a source that is none", "sources: [secret, pod]", []string{"/sources/1", "'secret', 'configmap'"}},
	{"a namespace that is a pattern", "namespaces: ['team-*']", []string{"/namespaces/0", "team-*"}},
	{"a variable that is not spelled as one", "env: {keyturn-settle: 1s}", []string{"/env", "keyturn-settle"}},
	{"a certificate of nobody's", "nats: {certificate: vault}", []string{"/nats/certificate", "'job', 'cert-manager', 'existing'"}},
	{"a hub without TLS", "nats: {leaf: {hub: nats://hub.example.com}}", []string{"/nats/leaf/hub"}},
	{"a mode that is none", "mode: both", []string{"/mode", "'split', 'single'"}},
	{"a field of pods that is none", "pod: {hostNetwork: true}", []string{"/pod", "hostNetwork", "not allowed"}},
	{"a variable with what is no field", "actuator: {extraEnv: [{name: A, valuefrom: {}}]}", []string{"/actuator/extraEnv/0", "valuefrom"}},
	{"what no name can begin with", "fullnameOverride: Keyturn", []string{"/fullnameOverride"}},
	{"a digest that is a tag", "image: {digest: v1}", []string{"/image/digest"}},
	{"a permission of Jobs that is none", "admissionPolicy: {nodeJobs: 'yes'}", []string{"/admissionPolicy/nodeJobs"}},
	{"a boolean of Reloader's that is none", "reloader: {autoReloadAll: maybe}", []string{"/reloader/autoReloadAll", "true, false"}},
}

func TestAWrongValueIsNamed(t *testing.T) {
	for _, test := range mistakes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for command, run := range map[string]func() (string, error){
				"template": func() (string, error) { return template(t, test.values) },
				"lint":     func() (string, error) { return helm(t, test.values, "lint", folder) },
			} {
				out, err := run()
				if err == nil {
					t.Errorf("helm %s: no error", command)
				}
				for _, want := range test.want {
					if !strings.Contains(out, want) {
						t.Errorf("helm %s: want %q in\n%s", command, want, out)
					}
				}
			}
		})
	}
}

func TestAValueThatHasAPlaceOfItsOwnIsNotTakenFromEnv(t *testing.T) {
	for variable, value := range map[string]string{
		"KEYTURN_CLUSTER": "cluster", "KEYTURN_NAMESPACES": "namespaces", "KEYTURN_NAMESPACE_SELECTOR": "namespaceSelector", "KEYTURN_SELECTOR": "selector",
		"KEYTURN_SOURCES": "sources", "KEYTURN_FORCE_SYNC": "secretStores.enabled", "KEYTURN_NATS_URL": "nats.url", "KEYTURN_ROLL_ALL": "rollAll",
		"KEYTURN_JOBS": "jobs.enabled", "KEYTURN_RELOAD_IN_PLACE": "reloadInPlace.enabled",
		"KEYTURN_LOG_LEVEL": "logLevel", "KEYTURN_LOG_FORMAT": "logFormat", "NATS_HUB": "nats.leaf.hub", "NATS_HUB_CA": "nats.leaf.caFile",
	} {
		refuses(t, "env: {"+variable+": x}", "env."+variable+": is a value of the chart, want it as "+value+"\n")
	}
}

func TestASecretIsNotTakenFromEnv(t *testing.T) {
	for _, variable := range []string{"BAO_TOKEN", "VAULT_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		refuses(t, "env: {"+variable+": hunter2}", "env."+variable+": is a secret, which the ConfigMap of both programs must not have; put it into "+
			"the Secret keyturn-watcher-env, keyturn-actuator-env or keyturn-audit-env\n")
	}
}

func TestWhatIsOfTheEmbeddedNATSIsRefusedWithAnotherOne(t *testing.T) {
	const embedded = ": is for the NATS that the actuator embeds, want nats.url empty"
	for values, want := range map[string]string{
		"nats: {url: nats://a:4222, leaf: {hub: tls://b:7422}}":                          "nats.leaf.hub" + embedded,
		"nats: {url: nats://a:4222, certificate: cert-manager}":                          "nats.certificate" + embedded,
		"nats: {url: nats://a:4222, certificate: existing}":                              "nats.certificate" + embedded,
		"{keys: {create: false}, nats: {url: nats://a:4222, certificate: cert-manager}}": "nats.certificate" + embedded,
		"{keys: {create: false}, nats: {url: nats://a:4222, certificate: existing}}":     "nats.certificate" + embedded,
		"{actuator: {replicas: 3}, nats: {url: nats://a:4222}}":                          "actuator.replicas" + embedded,
		"{actuator: {replicas: 3}, nats: {leaf: {hub: tls://b:7422}}}":                   "actuator.replicas: a leaf node of a hub has one actuator, want nats.leaf.hub empty",
	} {
		refuses(t, values, want)
	}
}

// The pods would wait for a Secret that nobody makes.
func TestWithoutTheJobACertificateIsOfSomebodyElse(t *testing.T) {
	refuses(t, "keys: {create: false}", "nats.certificate: is of the job that keys.create: false leaves out, want existing")
	for _, values := range []string{
		"{keys: {create: false}, nats: {certificate: existing}}", "{keys: {create: false}, nats: {certificate: cert-manager}}",
		"{keys: {create: false}, nats: {url: nats://a:4222}}",
	} {
		rendered(t, values)
	}
}

func TestNamespacesAreChosenInOneWay(t *testing.T) {
	for values, want := range map[string]string{
		"{namespaces: [a], namespaceSelector: b=c}":                  "namespaceSelector: is set",
		"{namespaces: [a], reloader: {namespaceSelector: b=c}}":      "reloader.namespaceSelector: is set",
		"{namespaces: [a], reloader: {ignoreNamespaces: b}}":         "reloader.ignoreNamespaces: is set",
		"{namespaceSelector: b=c, reloader: {watchGlobally: false}}": "namespaceSelector: is set",
		"{namespaces: [a], env: {KEYTURN_IGNORE_NAMESPACES: b}}":     "env.KEYTURN_IGNORE_NAMESPACES: is set",
	} {
		refuses(t, values, ": "+want+" beside the names of all namespaces to watch (namespaces, or reloader.watchGlobally: false), want one of the two\n")
	}
}

func TestTheWayToTheHubHasItsPort(t *testing.T) {
	for hub, port := range map[string]string{
		"tls://hub.example.com:443": "443", "tls://hub.example.com": "7422", "wss://hub.example.com": "443", "tls://user@[fd00::1]:7000": "7000",
	} {
		policy := rendered(t, "nats: {leaf: {hub: '"+hub+"'}}")["NetworkPolicy keyturn-system/keyturn-leaf"]
		if got, want := fmt.Sprint(policy.at("spec", "egress")), "[map[ports:[map[port:"+port+"]]]]"; got != want {
			t.Errorf("egress to %s: got %s, want %s", hub, got, want)
		}
	}
}

func TestTheWayToNATSHasThePortsOfItsAddress(t *testing.T) {
	for url, want := range map[string]string{
		"nats://a:4333": "[map[port:4333]]", "tls://a": "[map[port:4222]]", "nats://a:4333,nats://b,tls://c": "[map[port:4333] map[port:4222]]",
		"wss://a/": "[map[port:443]]", "ws://a:8080/": "[map[port:8080]]", "nats://user:1234@a": "[map[port:4222]]",
	} {
		all := rendered(t, "nats: {url: '"+url+"'}")
		for _, program := range []string{"watcher", "actuator"} {
			if got := strings.Join(egressOf(all, program), " "); !strings.Contains(got, "map[ports:"+want+"]") {
				t.Errorf("egress of the %s to %s: got %s, want %s", program, url, got, want)
			}
		}
	}
}

func TestTheChartIsWithoutFaults(t *testing.T) {
	for _, values := range []string{
		"{}", "namespaces: [a, b]", "nats: {leaf: {hub: tls://a:7422}}", "actuator: {replicas: 3}",
		"nats: {storage: {ephemeral: true}}", "mode: single", "fullnameOverride: roller",
		"{nats: {url: nats://a:4222}, keys: {create: false}, networkPolicy: {enabled: false}}",
	} {
		if out, err := helm(t, values, "lint", "--strict", folder); err != nil {
			t.Errorf("with %s: %v\n%s", values, err, out)
		}
	}
}

func TestWhatIsNotWatchedIsNotAllowed(t *testing.T) {
	o := rendered(t, "sources: [configmap]")
	got := strings.Join(o["ClusterRole <nil>/keyturn-watcher"]["rules"].([]string), ", ")
	if strings.Contains(got, "secrets") || !strings.Contains(got, "list configmaps") {
		t.Errorf("rights of the watcher: got %s", got)
	}
	if got := o["ConfigMap keyturn-system/keyturn"].at("data", "KEYTURN_SOURCES"); got != "configmap" {
		t.Errorf("sources: got %v", got)
	}
}

func TestAChangedSettingReplacesThePods(t *testing.T) {
	checksums := map[string]bool{}
	for _, values := range []string{"{}", "env: {KEYTURN_SETTLE: 2s}", "env: {KEYTURN_SETTLE: 3s}", "actuator: {replicas: 3}"} {
		checksums[checksumOf(t, values)] = true
	}
	if len(checksums) != 4 {
		t.Errorf("got %v, want one for each", checksums)
	}
}

// Labels of the pods change them, too. This is about those that only the ConfigMaps have.
func TestALabelOfTheSettingsIsNoSetting(t *testing.T) {
	want := checksumOf(t, "{}")
	for _, values := range []string{"commonLabels: {team: x}", "image: {tag: v9.9.9}"} {
		if got := checksumOf(t, values); got != want {
			t.Errorf("with %s: got the checksum %s, want %s", values, got, want)
		}
	}
}

// checksumOf returns the checksum of the settings in the first pod's annotations.
func checksumOf(t *testing.T, values string) string {
	t.Helper()
	out, err := template(t, values)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, checksum, _ := strings.Cut(out, "checksum/config: ")
	checksum, _, _ = strings.Cut(checksum, "\n")
	return checksum
}

func TestAnOldClusterIsRefusedInOneLine(t *testing.T) {
	for version, want := range map[string]struct{ values, message string }{
		"1.28.15":       {"admissionPolicy: {enabled: false}", "requires kubeVersion: >=1.29.0-0"},
		"1.29.9-gke.10": {"{}", "admissionPolicy.enabled: is true, and Kubernetes v1.29.9-gke.10 has no such policies before 1.30"},
		"1.29.0":        {"admissionPolicy: {enabled: false}", ""},
		"1.30.0-eks.1":  {"{}", ""},
	} {
		out, err := helm(t, want.values, "template", "keyturn", folder, "--kube-version", version)
		if (err == nil) != (want.message == "") || !strings.Contains(out, want.message) {
			t.Errorf("with Kubernetes %s: got %v, want %q in\n%.300s", version, err, want.message, out)
		}
	}
}
