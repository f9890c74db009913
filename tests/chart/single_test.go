package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// theOnePod is the Deployment of the installation with one pod.
const theOnePod = "Deployment keyturn-system/keyturn"

// isPolicy reports whether an object is an admission policy or a binding of one.
func isPolicy(name string, _ object) bool {
	return strings.HasPrefix(name, "ValidatingAdmissionPolicy")
}

// An installation to try is read before it is applied. The Namespace is not among the objects, and counts.
func TestOnePodIsEightObjectsBesideItsPolicies(t *testing.T) {
	all := kustomized(t, "single")
	maps.DeleteFunc(all, isPolicy)
	if names := slices.Sorted(maps.Keys(all)); len(names)+1 > 8 {
		t.Errorf("got the Namespace and %s, want eight at most", strings.Join(names, ", "))
	}
	for name := range all {
		if strings.HasPrefix(name, "NetworkPolicy ") || strings.HasPrefix(name, "Service ") || strings.HasPrefix(name, "PersistentVolumeClaim ") {
			t.Errorf("there is %s", name)
		}
	}
}

// Both forms apply the same objects of these names, so that none is without them while one form replaces the other.
func TestBothFormsHaveTheSamePoliciesAndTheSameNamespace(t *testing.T) {
	single, two := kustomized(t, "single"), kustomized(t, "base")
	for _, all := range []map[string]object{single, two} {
		maps.DeleteFunc(all, func(name string, o object) bool { return !isPolicy(name, o) })
	}
	same(t, two, single)
	if len(single) == 0 {
		t.Error("there are no policies")
	}
	if testkit.ReadFile(t, "../../deploy/single/namespace.yaml") != testkit.ReadFile(t, "../../deploy/programs/namespace.yaml") {
		t.Error("the Namespace is not that of deploy/programs")
	}
}

// A change while neither form runs is found by the records on the workloads: their fingerprints are by that key, and events name that cluster. Two
// leaders at once would roll twice.
func TestBothFormsHaveTheSameClusterAndTheSameLease(t *testing.T) {
	single, two := kustomized(t, "single"), kustomized(t, "base")
	const settings = "ConfigMap keyturn-system/keyturn"
	if got, want := single[settings].at("data", "KEYTURN_CLUSTER"), two[settings].at("data", "KEYTURN_CLUSTER"); got != want || got == nil {
		t.Errorf("cluster: got %v, want %v", got, want)
	}
	var leases []string
	for _, right := range single["Role keyturn-system/keyturn-own"]["rules"].([]string) {
		if strings.Contains(right, " leases.") {
			leases = append(leases, right)
		}
	}
	if diff := cmp.Diff(two["Role keyturn-system/keyturn-actuator-leader"]["rules"], any(leases)); diff != "" {
		t.Errorf("rights on Leases (-two pods +one):\n%s", diff)
	}
}

// Any pod of the cluster could otherwise try the reader's key.
func TestNATSOfTheOnePodListensOnLoopbackAlone(t *testing.T) {
	containers, _ := kustomized(t, "single")[theOnePod].at("spec", "template", "spec", "containers").([]any)
	if len(containers) != 1 {
		t.Fatalf("got %d containers, want one", len(containers))
	}
	container := object(containers[0].(map[string]any))
	if command := fmt.Sprint(container["command"]); command != "[keyturn run]" {
		t.Errorf("command: got %s", command)
	}
	if args := fmt.Sprint(container["args"]); !strings.Contains(args, "--nats-listen=127.0.0.1:4222 ") {
		t.Errorf("arguments: got %s", args)
	}
	if ports := fmt.Sprint(container["ports"]); strings.Contains(ports, "4222") {
		t.Errorf("ports: got %s", ports)
	}
}

func TestTheComponentVolumeKeepsTheStreamsOfTheOnePod(t *testing.T) {
	all := kustomized(t, "single", "volume")
	if all["PersistentVolumeClaim keyturn-system/keyturn-data"] == nil {
		t.Error("there is no claim")
	}
	const want = "[map[name:data persistentVolumeClaim:map[claimName:keyturn-data]]]"
	if got := fmt.Sprint(all[theOnePod].at("spec", "template", "spec", "volumes")); got != want {
		t.Errorf("volumes: got %s, want %s", got, want)
	}
}

// Otherwise the alert for Keyturn being down is always on.
func TestTheOnePodIsScrapedByTheComponentMonitoring(t *testing.T) {
	all := kustomized(t, "single", "monitoring")
	monitor := all["PodMonitor keyturn-system/keyturn"]
	want := all[theOnePod].at("spec", "selector", "matchLabels")
	if diff := cmp.Diff(want, monitor.at("spec", "selector", "matchLabels")); diff != "" {
		t.Errorf("labels (-pod +monitor):\n%s", diff)
	}
	same(t, map[string]object{"monitor": monitor}, map[string]object{
		"monitor": rendered(t, "{mode: single, monitoring: {enabled: true}}")["PodMonitor keyturn-system/keyturn"],
	})
}

// What one pod has none of is named, so that nobody believes that it is there.
func TestAValueForTwoPodsIsRefusedWithOne(t *testing.T) {
	for name, values := range map[string]string{
		"nats.url": "nats: {url: nats://a:4222}", "nats.leaf.hub": "nats: {leaf: {hub: tls://a:7422}}", "openbaoAudit.enabled": "openbaoAudit: {enabled: true}",
		"projector.enabled": "projector: {enabled: true}", "actuator.replicas": "actuator: {replicas: 3}", "watcher.replicas": "watcher: {replicas: 2}",
		"nats.certificate": "nats: {certificate: cert-manager}",
	} {
		refuses(t, "{mode: single, "+values+"}", name+": is set with mode: single, in which no other program is on its NATS; want mode: split\n")
	}
}

// What a feature needs is for the one account there is, with the names of both programs' in one.
func TestOnePodMayWhatItsFeaturesNeed(t *testing.T) {
	const values = "secretStores: {enabled: true}, argoRollouts: {enabled: true}, jobs: {enabled: true}, reloadInPlace: {enabled: true}, " +
		"secretProviderClasses: {enabled: true}, namespaceSelector: a=b"
	rightsOf := func(values string) map[string]bool {
		granted := map[string]bool{}
		for name, one := range rendered(t, values) {
			rules, _ := one["rules"].([]string)
			for _, rule := range rules {
				granted[rule] = true
			}
			if strings.HasPrefix(name, "ClusterRoleBinding ") && strings.Contains(values, "single") && !strings.Contains(fmt.Sprint(one["subjects"]), "name:keyturn ") {
				t.Errorf("%s is for %v", name, one["subjects"])
			}
		}
		return granted
	}
	one, two := rightsOf("{mode: single, "+values+"}"), rightsOf("{"+values+"}")
	for _, name := range []string{"keyturn-nats-ca", "keyturn-nats-tls"} { // Of the job.
		delete(two, "get secrets `"+name+"`")
		delete(two, "update secrets `"+name+"`")
	}
	for _, name := range []string{"keyturn-fingerprint-key", "keyturn-nats-reader", "keyturn-nats-storage"} {
		two["get secrets `"+name+"`"] = true
	}
	if diff := cmp.Diff(two, one); diff != "" {
		t.Errorf("rights (-two pods +one):\n%s", diff)
	}
}

// The policies know the account by its name.
func TestTheAccountOfOnePodIsConfinedByItsName(t *testing.T) {
	all := rendered(t, "{mode: single, fullnameOverride: rolls, actuator: {serviceAccount: {name: roller}}}")
	if got := all["Deployment keyturn-system/rolls"].at("spec", "template", "spec", "serviceAccountName"); got != "roller" {
		t.Errorf("account: got %v", got)
	}
	for policy, want := range map[string]string{
		"actuator": "endsWith(':roller')", "protected": "'system:serviceaccount:keyturn-system:roller'", "keys": "'system:serviceaccount:keyturn-system:roller'",
	} {
		if got := fmt.Sprint(all["ValidatingAdmissionPolicy <nil>/keyturn-system-"+policy].at("spec", "matchConditions")); !strings.Contains(got, want) {
			t.Errorf("the policy %s: got %s, want %s", policy, got, want)
		}
	}
	if got := fmt.Sprint(all["ValidatingAdmissionPolicy <nil>/keyturn-system-actuator"].at("spec", "validations")); !strings.Contains(got, "startsWith('rolls-')") {
		t.Errorf("what is protected beside it: got %s", got)
	}
}

func TestAVolumeOfOnePodStays(t *testing.T) {
	all := rendered(t, "{mode: single, nats: {storage: {ephemeral: false, size: 5Gi, className: fast}}}")
	claim := all["PersistentVolumeClaim keyturn-system/keyturn-data"]
	if got := claim.at("metadata", "annotations", "helm.sh/resource-policy"); got != "keep" {
		t.Errorf("policy: got %v", got)
	}
	if got := fmt.Sprint(claim["spec"]); !strings.Contains(got, "storage:5Gi") || !strings.Contains(got, "storageClassName:fast") {
		t.Errorf("claim: got %s", got)
	}
	if got := fmt.Sprint(all[theOnePod].at("spec", "template", "spec", "volumes")); !strings.Contains(got, "claimName:keyturn-data") {
		t.Errorf("volumes: got %s", got)
	}
}
