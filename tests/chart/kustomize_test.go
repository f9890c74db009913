package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheChartMakesWhatKustomizeMakes(t *testing.T) {
	tests := []struct {
		name       string
		values     string
		base       string
		components []string
	}{
		{name: "with the default values deploy/base", base: "base"},
		{name: "in one pod deploy/single", values: "mode: single", base: "single"},
		{
			name: "in one pod without the admission policy", values: "{mode: single, admissionPolicy: {enabled: false}}",
			base: "single", components: []string{"without-admission-policy"},
		},
		{name: "with a namespace deploy/namespaced", values: "namespaces: [team-a]", base: "namespaced"},
		{name: "with secret stores", values: "secretStores: {enabled: true}", base: "base", components: []string{"secret-stores"}},
		{name: "with Argo Rollouts", values: "argoRollouts: {enabled: true}", base: "base", components: []string{"argo-rollouts"}},
		{name: "with Jobs", values: "jobs: {enabled: true}", base: "base", components: []string{"jobs"}},
		{name: "with reload in place", values: "reloadInPlace: {enabled: true}", base: "base", components: []string{"reload-in-place"}},
		{
			name: "without the admission policy", values: "admissionPolicy: {enabled: false}",
			base: "base", components: []string{"without-admission-policy"},
		},
		{
			name:   "as Reloader by its variables",
			values: "env: {KEYTURN_RELOADER: 'on,metrics'}", base: "base", components: []string{"reloader"},
		},
		{
			name: "with the Secrets Store CSI driver", values: "secretProviderClasses: {enabled: true}",
			base: "base", components: []string{"secret-provider-classes"},
		},
		{name: "with a NATS of your own", values: "nats: {url: nats://nats.nats.svc:4222}", base: "base", components: []string{"external-nats"}},
		{
			name: "with a certificate of cert-manager", values: "nats: {certificate: cert-manager}", base: "base", components: []string{"cert-manager"},
		},
		{name: "as a leaf node of a hub's", values: "nats: {leaf: {hub: tls://hub.example.com:7422}}", base: "base", components: []string{"leaf"}},
		{name: "with three actuators", values: "actuator: {replicas: 3}", base: "base", components: []string{"high-availability"}},
		{name: "without a volume", values: "nats: {storage: {ephemeral: true}}", base: "base", components: []string{"ephemeral-storage"}},
		{name: "with Prometheus", values: "monitoring: {enabled: true}", base: "base", components: []string{"monitoring"}},
		{name: "with a collector", values: "otlp: {enabled: true}", base: "base", components: []string{"otlp"}},
		{name: "with the audit of a store", values: "openbaoAudit: {enabled: true}", base: "base", components: []string{"openbao-audit"}},
		{
			name: "with secret stores and the audit of one", values: "{secretStores: {enabled: true}, openbaoAudit: {enabled: true}}",
			base: "base", components: []string{"secret-stores", "openbao-audit"},
		},
		{
			name:       "with all of them for one namespace",
			values:     "{namespaces: [team-a], nats: {url: nats://nats.nats.svc:4222}, monitoring: {enabled: true}, otlp: {enabled: true}, openbaoAudit: {enabled: true}}",
			base:       "namespaced",
			components: []string{"monitoring", "otlp", "openbao-audit", "external-nats"},
		},
		{
			name:       "as a leaf node with all of them for one namespace",
			values:     "{namespaces: [team-a], nats: {leaf: {hub: tls://hub.example.com:7422}, certificate: cert-manager}, monitoring: {enabled: true}, otlp: {enabled: true}, openbaoAudit: {enabled: true}}",
			base:       "namespaced",
			components: []string{"leaf", "monitoring", "otlp", "openbao-audit", "cert-manager"},
		},
		{
			name:       "with three actuators and all of them for one namespace",
			values:     "{namespaces: [team-a], actuator: {replicas: 3}, nats: {storage: {ephemeral: true}}, monitoring: {enabled: true}, otlp: {enabled: true}, openbaoAudit: {enabled: true}}",
			base:       "namespaced",
			components: []string{"high-availability", "ephemeral-storage", "monitoring", "otlp", "openbao-audit"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := kustomized(t, test.base, test.components...)
			same(t, want, rendered(t, test.values))
		})
	}
}

func TestANamespaceSelectorAddsTheRightToSeeLabels(t *testing.T) {
	want := kustomized(t, "base", "namespace-selector")
	got := rendered(t, "namespaceSelector: keyturn=on")
	settings := "ConfigMap keyturn-system/keyturn"
	if selector := got[settings].at("data", "KEYTURN_NAMESPACE_SELECTOR"); selector != "keyturn=on" {
		t.Errorf("selector: got %v", selector)
	}
	delete(want, settings) // In which the component leaves the selector to the overlay.
	delete(got, settings)
	same(t, want, got)
}

func TestSomeNamespacesNeedRolesOnly(t *testing.T) {
	const rollouts = "keyturn-actuator-argo-rollouts"
	for values, wants := range map[string][]string{
		"{namespaces: [team-a, team-b], argoRollouts: {enabled: true}}": {
			"Role team-a/" + rollouts, "RoleBinding team-a/" + rollouts, "Role team-b/" + rollouts, "RoleBinding team-b/" + rollouts,
		},
		"reloader: {watchGlobally: false, namespaces: [team-a]}": {"Role team-a/keyturn-watcher", "Role keyturn-system/keyturn-actuator"},
	} {
		all := rendered(t, values)
		for _, want := range wants {
			if all[want] == nil {
				t.Errorf("with %s there is no %s", values, want)
			}
		}
		for name := range all {
			if strings.HasPrefix(name, "ClusterRole") {
				t.Errorf("with %s there is %s", values, name)
			}
		}
	}
}

func TestAnInstallationIsInTheNamespaceOfItsRelease(t *testing.T) {
	const all = "{secretStores: {enabled: true}, monitoring: {enabled: true}, otlp: {enabled: true}, "
	for _, others := range []string{
		"nats: {leaf: {hub: tls://hub.example.com:7422}, certificate: cert-manager}, openbaoAudit: {enabled: true}}",
		"actuator: {replicas: 3}, openbaoAudit: {enabled: true}}",
		"mode: single}",
	} {
		out := releasedIn(t, "elsewhere", all+others)
		if strings.Contains(out, systemNamespace) {
			t.Errorf("%s is named in\n%s", systemNamespace, out)
		}
	}
}

// ofHelm are the labels that Helm's objects have and kustomize's do not, or with another value.
var ofHelm = cmpopts.IgnoreMapEntries(func(name string, _ any) bool {
	return name == "helm.sh/chart" || name == "app.kubernetes.io/managed-by" || name == "app.kubernetes.io/version"
})

// same compares object by object, so that a failure shows no more than what differs.
func same(t *testing.T, kustomize, chart map[string]object) {
	t.Helper()
	names := maps.Clone(kustomize)
	maps.Copy(names, chart)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := cmp.Diff(kustomize[name], chart[name], ofHelm); diff != "" {
			t.Errorf("%s (-kustomize +chart):\n%s", name, diff)
		}
	}
}
