package chart

import (
	"maps"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestReloadersValuesAreTakenOver(t *testing.T) {
	tests := []struct {
		name, values string
		want         map[string]any
	}{
		{"no ConfigMaps, as a string", "ignoreConfigMaps: 'true'", map[string]any{"KEYTURN_SOURCES": "secret"}},
		{
			"namespaces by name and by label", "ignoreNamespaces: 'kube-system, dev', namespaceSelector: 'reloader=on,tier'",
			map[string]any{"KEYTURN_NAMESPACE_SELECTOR": "reloader=on,tier", "KEYTURN_IGNORE_NAMESPACES": "kube-system,dev"},
		},
		{
			"namespaces by label, in Reloader's old form", "namespaceSelector: 'team:*, env: prod,tier=*,a=b'",
			map[string]any{"KEYTURN_NAMESPACE_SELECTOR": "team, env=prod,tier,a=b"},
		},
		{"a pattern that does not count", "watchGlobally: false, ignoreNamespaces: 'kube-*'", map[string]any{"KEYTURN_NAMESPACES": "keyturn-system"}},
		{"namespaces that do not count", "watchGlobally: false, ignoreNamespaces: a, namespaceSelector: b=c", map[string]any{"KEYTURN_NAMESPACES": "keyturn-system"}},
		{"sources by label, in Reloader's old form", "resourceLabelSelector: 'app:web'", map[string]any{"KEYTURN_SELECTOR": "app=web"}},
		{"a level of the log by another name", "logLevel: warning", map[string]any{"KEYTURN_LOG_LEVEL": "warn"}},
		{"a level of the log in capitals", "logLevel: WARNING", map[string]any{"KEYTURN_LOG_LEVEL": "warn"}},
		{"an account, as a string", "serviceAccount: {create: 'true'}", map[string]any{}},
		{
			"some namespaces, as a string", "watchGlobally: false, namespaces: 'team-a, team-b'",
			map[string]any{"KEYTURN_NAMESPACES": "keyturn-system,team-a,team-b"},
		},
		{
			"names of annotations", "custom_annotations: {auto: example.org/auto, secret_auto: example.org/s, pauseTime: example.org/at, match: ''}",
			map[string]any{
				"KEYTURN_RELOADER": "on,metrics,strategy=env-vars,auto-annotation=example.org/auto,pause-deployment-time-annotation=example.org/at,secret-auto-annotation=example.org/s",
			},
		},
		{"deletions, as a string", "reloadOnDelete: 'true'", map[string]any{"KEYTURN_ROLL_ON_DELETE": "true"}},
		{"no Jobs, as a string", "ignoreJobs: 'true'", map[string]any{"KEYTURN_JOBS": "start"}},
		{"the default strategy", "reloadStrategy: default", map[string]any{"KEYTURN_RELOADER": "on,metrics,strategy=env-vars"}},
		{"what is so anyway", "syncAfterRestart: true, readOnlyRootFileSystem: true, enableMetricsByNamespace: true", map[string]any{}},
	}
	always := rendered(t, "reloaderMode: true")[settings]["data"].(map[string]any)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := maps.Clone(always)
			maps.Copy(want, test.want)
			maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
			got := rendered(t, "reloader: {"+test.values+"}")[settings]["data"]
			testkit.WantEqual(t, "settings", any(want), got)
		})
	}
}

func TestAValueOfReloaderThatKeyturnHasNotSaysWhatToUseInstead(t *testing.T) {
	tests := []struct{ name, values, want string }{
		{"an annotation that has no other name", "custom_annotations: {exclude: a/b}", "reloader.custom_annotations.exclude: is no value of"},
		{"values that are no map", "rbac: " + address, "reloader.rbac: is no map, want one of enabled, labels"},
		{"the same from a field", "deployment: {env: {field: {KUBERNETES_NAMESPACE: metadata.namespace}}}", "reloader.deployment.env.field.KUBERNETES_NAMESPACE: is set, which"},
		{"a namespace by its variable", "deployment: {env: {open: {KUBERNETES_NAMESPACE: a}}}", "reloader.deployment.env.open.KUBERNETES_NAMESPACE: is set, which"},
		{"metrics by their variable", "deployment: {env: {open: {METRICS_COUNT_BY_NAMESPACE: enabled}}}", "reloader.deployment.env.open.METRICS_COUNT_BY_NAMESPACE: is set, which"},
		{"namespaces beside all of them", "watchGlobally: true, namespaces: [a]", "reloader.namespaces: is set with reloader.watchGlobally, which watches all"},
		{
			"an ignored namespace that is a pattern", "ignoreNamespaces: 'dev, kube-*'",
			`reloader.ignoreNamespaces: has "kube-*", want names of namespaces, separated by commas; without it Keyturn does as Reloader, which takes no patterns` + "\n",
		},
		{"a watched namespace that is a pattern, in a string", "watchGlobally: false, namespaces: 'a,team-*'", `reloader.namespaces: has "team-*", want names of namespaces`},
		{"nothing to watch", "ignoreSecrets: true, ignoreConfigMaps: true", "reloader.ignoreSecrets, reloader.ignoreConfigMaps: nothing is left to watch"},
		{"a value that Reloader has not either", "autoReload: true", "reloader.autoReload: is no value of Reloader's chart, want one of: autoReloadAll, "},
		{"the same further below", "netpol: {enable: true}", "reloader.netpol.enable: is no value of Reloader's chart, want one of: enabled, from, to"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := template(t, "reloader: {"+test.values+"}")
			if err == nil || !strings.Contains(out, ": "+test.want) {
				t.Errorf("got %v, want %q in\n%s", err, test.want, out)
			}
			if strings.Contains(out, address) {
				t.Errorf("an address, which is a password, is printed:\n%s", out)
			}
		})
	}
}

func TestAValueBesideReloadersSaysWhatToUseInstead(t *testing.T) {
	refuses(t, "image: {repository: reg.example.com/stakater/reloader}",
		`: image.repository: is "reg.example.com/stakater/reloader", want the image of Keyturn`)
}

func TestReplicasOfTheCommandLineAreAsThoseOfAFile(t *testing.T) {
	out, err := helm(t, "reloaderMode: true", "template", "keyturn", folder, "--set", "reloader.deployment.replicas=1")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Reloader's chart evaluates templates in these values.
func TestTemplatesInReloadersValuesAreEvaluated(t *testing.T) {
	const its = `{team: "{{ .Release.Name }}-{{ .Values.cluster }}"}`
	for values, wants := range map[string][]string{
		"matchLabels: " + its:                                             {"Deployment keyturn-system/keyturn-watcher spec template metadata labels"},
		"deployment: {labels: " + its + "}":                               {"Deployment keyturn-system/keyturn-watcher metadata labels"},
		"deployment: {annotations: " + its + "}":                          {"Deployment keyturn-system/keyturn-watcher metadata annotations"},
		"deployment: {pod: {annotations: " + its + "}}":                   {"Deployment keyturn-system/keyturn-watcher spec template metadata annotations"},
		"rbac: {labels: " + its + "}":                                     {"ClusterRole <nil>/keyturn-watcher metadata labels"},
		"serviceAccount: {labels: " + its + ", annotations: " + its + "}": {"ServiceAccount keyturn-system/keyturn-watcher metadata labels", "ServiceAccount keyturn-system/keyturn-watcher metadata annotations"},
		"service: {labels: " + its + ", annotations: " + its + "}":        {"Service keyturn-system/keyturn-metrics metadata labels", "Service keyturn-system/keyturn-metrics metadata annotations"},
		"podMonitor: {enabled: true, labels: " + its + "}":                {"PodMonitor keyturn-system/keyturn-watcher metadata labels"},
	} {
		objects := rendered(t, "{cluster: east, reloader: {"+values+"}}")
		for _, want := range wants {
			fields := strings.Fields(want)
			path := append(fields[2:], "team")
			if got := objects[fields[0]+" "+fields[1]].at(path...); got != "keyturn-east" {
				t.Errorf("with %s: got %v in %s", values, got, want)
			}
		}
	}
}

func TestAValueOfReloaderIsTakenOnceItsSubstituteIsSet(t *testing.T) {
	for _, values := range []string{
		"{reloader: {enableHA: true, deployment: {replicas: 2}}, actuator: {replicas: 3}}",
		"{reloader: {enableHA: true}, nats: {url: nats://a:4222}}",
		"{image: {repository: registry.example.com/keyturn, name: mirror/reloader}}",
		"{reloader: {serviceAccount: {create: false, name: x}}, watcher: {serviceAccount: {create: false, name: a}}, actuator: {serviceAccount: {create: false, name: b}}}",
	} {
		rendered(t, values)
	}
}

// reloaderFlags are the flags of Reloader 1.4 and the variables that it reads.
const reloaderFlags = `--auto-reload-all --configmap-annotation --secret-annotation --auto-annotation --ignore-annotation
--configmap-auto-annotation --secret-auto-annotation --auto-search-annotation --search-match-annotation --pause-deployment-annotation
--pause-deployment-time-annotation --log-format --log-level --webhook-url --resources-to-ignore --ignored-workload-types --namespaces
--namespaces-to-ignore --namespace-selector --resource-label-selector --is-Argo-Rollouts --reload-strategy --reload-on-create
--reload-on-delete --enable-ha --sync-after-restart --enable-pprof --pprof-addr --enable-csi-integration
KUBERNETES_NAMESPACE POD_NAME POD_NAMESPACE METRICS_COUNT_BY_NAMESPACE ALERT_ON_RELOAD ALERT_SINK ALERT_WEBHOOK_URL
ALERT_ADDITIONAL_INFO ALERT_WEBHOOK_PROXY`
