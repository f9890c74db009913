package tests

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testkit"
)

// annotate is a patch of an annotation AT some metadata, of a number of bytes.
func annotate(at, name string, size int) string {
	return fmt.Sprintf(`{op: add, path: %s/annotations/%s, value: %s}`, at, strings.ReplaceAll(name, "/", "~1"), strings.Repeat("x", size))
}

// Annotations of an object may have 256 KiB. Whoever fills them keeps everybody else from writing any.
func TestTheActuatorsTokenLeavesRoomForOthersAnnotations(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	c.confine("annotations")
	const kinds = 5 // of which a record may have those that only patterns match, each of 32 KiB
	tests := []struct {
		name       string
		operations string
		refused    bool
	}{
		{"the greatest record of what patterns match", annotate("/metadata", "keyturn.dev/rolled", kinds<<15), false},
		{"a record that leaves no room", annotate("/metadata", "keyturn.dev/rolled", 192<<10+1), true},
		{
			"two records that leave no room together",
			annotate("/metadata", "keyturn.dev/rolled", 160<<10) + "," + annotate("/metadata", "keyturn.dev/reverted", 40<<10), true,
		},
		{"the longest cause, with a path, keys and what is behind it", annotate("TEMPLATE/metadata", "keyturn.dev/cause", 5<<10), false},
		{"a cause that is a book", annotate("TEMPLATE/metadata", "keyturn.dev/cause", 8<<10+1), true},
		{"a revision that is a book", annotate("TEMPLATE/metadata", "keyturn.dev/revision", 8<<10+1), true},
		{"a marker that is a book", annotate("TEMPLATE/metadata", "reloader.stakater.com/last-reloaded-from", 8<<10+1), true},
		{"a request that is a book", annotate("/metadata", "keyturn.dev/rolled-now", 8<<10+1), true},
		{"the longest text about the last roll", annotate("/metadata", "keyturn.dev/last", 2000), false},
		{"a longer text about the last roll", annotate("/metadata", "keyturn.dev/last", 2001), true},
		{"a time that is a book", annotate("/metadata", "deployment.reloader.stakater.com/paused-at", 8<<10+1), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := c.patch(c.namespace, deployment, tt.operations); c.refused(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("got %v, want refused %v", err, tt.refused)
			}
		})
	}
	// Whether the API server takes such a time depends on the kind's definition.
	restart := `{op: add, path: /spec/restartAt, value: '2026-11-23T00:00:00.` + strings.Repeat("0", 8<<10) + `Z'}`
	if err := c.patch(c.namespace, argoRolloutOf, restart); err == nil {
		t.Error("a time of a restart that is a book passes, want that it is refused")
	}
	if err := c.patch(c.namespace, externalOf, annotate("/metadata", "external-secrets.io/force-sync", 8<<10+1)); !c.refused(err) {
		t.Errorf("a sync that is a book: got %v, want that the policy refuses it", err)
	}
}

// update changes an object as the actuator, in a dry run.
func (c *confined) update(namespace string, resource schema.GroupVersionResource, name string, change func(*unstructured.Unstructured)) error {
	c.Helper()
	object, err := c.admin.Resource(resource).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
	testkit.Must(c, err)
	change(object)
	_, err = c.actuator.Resource(resource).Namespace(namespace).Update(c.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func TestTheActuatorsTokenWritesOfItsLeaseWhatAnElectionDoes(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	own := c.system + "-actuator"
	c.apply("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: " + own + ", namespace: " + c.system + "}\n" +
		"spec: {holderIdentity: them, leaseDurationSeconds: 7}\n")
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
				t.Error(err)
			}
		}
	}
	tests := []struct {
		name    string
		change  func(*unstructured.Unstructured)
		refused bool
	}{
		{"takes it", set("us", "spec", "holderIdentity"), false},
		{"renews it", set("2026-11-23T00:00:00.000000Z", "spec", "renewTime"), false},
		{"counts", set(int64(3), "spec", "leaseTransitions"), false},
		{"adds a label", set("b", "metadata", "labels", "a"), true},
		{"adds an annotation", set("b", "metadata", "annotations", "a"), true},
		{"adds a finalizer", set([]any{"example.org/a"}, "metadata", "finalizers"), true},
		{"takes it under a name that is a book", set(strings.Repeat("x", 254), "spec", "holderIdentity"), true},
		// The others would wait for that long, also when the token is revoked.
		{"takes it for years", set(int64(1)<<30, "spec", "leaseDurationSeconds"), true},
		{"says who owns more of it", func(o *unstructured.Unstructured) {
			o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
				Manager: "them", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: leases.GroupVersion().String(), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`),
			}))
		}, true},
	}
	for _, tt := range tests {
		if err := c.update(c.system, leases, own, tt.change); err != nil && !c.refused(err) {
			t.Errorf("without the policy who %s: %v", tt.name, err)
		}
	}
	c.confine("")
	for _, tt := range tests {
		t.Run("who "+tt.name, func(t *testing.T) {
			if err := c.update(c.system, leases, own, tt.change); c.refused(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("got %v, want refused %v", err, tt.refused)
			}
		})
	}
}

// Without these fields a Lease is small, and nobody else acts on it.
func TestTheActuatorsTokenMakesItsLeaseAsAnElectionDoes(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	own := c.system + "-actuator"
	const form = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: %s%s}\nspec: {%s}\n"
	tests := []struct {
		name, metadata, spec string
		refused              bool
	}{
		{"of an election", "", "holderIdentity: us, leaseDurationSeconds: 7, leaseTransitions: 0, renewTime: '2026-11-23T00:00:00.000000Z'", false},
		{"with a label", ", labels: {a: b}", "", true},
		{"with an annotation", ", annotations: {a: b}", "", true},
		{"with a finalizer", ", finalizers: [example.org/a]", "", true},
		{"with an owner", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: a}]", "", true},
		{"for years", "", "holderIdentity: us, leaseDurationSeconds: 1000000000", true},
		{"under a name that is a book", "", "holderIdentity: " + strings.Repeat("x", 254), true},
		{"with owners of fields that are a book", bookOfOwners(leases.GroupVersion().String()), "holderIdentity: us", true},
	}
	for _, tt := range tests {
		if err := c.create(c.system, leases, fmt.Sprintf(form, own, tt.metadata, tt.spec)); err != nil {
			t.Errorf("without the policy a Lease %s: %v", tt.name, err)
		}
	}
	c.confine("")
	for _, tt := range tests {
		t.Run("a Lease "+tt.name, func(t *testing.T) {
			err := c.create(c.system, leases, fmt.Sprintf(form, own, tt.metadata, tt.spec))
			if c.refused(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("got %v, want refused %v", err, tt.refused)
			}
		})
	}
}

// bookOfOwners is a field of the metadata of an object of a version that says with many words who owns its fields.
func bookOfOwners(version string) string {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("'f:name-%d': {}", i)
	}
	return ", managedFields: [{manager: us, operation: Update, apiVersion: " + version + ", fieldsType: FieldsV1, " +
		"fieldsV1: {'f:metadata': {'f:annotations': {" + strings.Join(names, ", ") + "}}}}]"
}

var kubeEvents = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// forgedEvent is an Event, and whether the policy refuses it.
type forgedEvent struct {
	name, event string
	refused     bool
}

// forgedEvents are Events in a namespace: some as Keyturn may write them, and others that differ from those in one thing.
func forgedEvents(namespace string) []forgedEvent {
	const form = "apiVersion: v1\nkind: Event\nmetadata: {generateName: web.%s}\ninvolvedObject: {%s}\nreason: Rolled\nmessage: m\n" +
		"type: Normal\nsource: {component: %s}\nreportingComponent: %s\nfirstTimestamp: '2026-11-23T00:00:00Z'\n" +
		"lastTimestamp: '2026-11-23T00:00:00Z'\ncount: 1\n%s"
	about := "apiVersion: apps/v1, kind: Deployment, name: web, namespace: " + namespace
	node := "apiVersion: v1, kind: Node, name: a, namespace: " + namespace
	ours := fmt.Sprintf(form, "", about, "keyturn", "keyturn.dev/actuator", "")
	return []forgedEvent{
		{"Keyturn's", fmt.Sprintf(form, ", annotations: {keyturn.dev/traceparent: x}", about, "keyturn", "keyturn.dev/actuator", ""), false},
		{"Keyturn's, with a name of its own", strings.Replace(ours, "generateName: web.", "name: web.0a1b", 1), false},
		{"Keyturn's about a sync", strings.NewReplacer("apps/v1", "external-secrets.io/v1", "Deployment", "ExternalSecret").Replace(ours), false},
		{"of a kubelet", fmt.Sprintf(form, "", about, "kubelet", "kubelet", ""), true},
		{"of a kubelet beside Keyturn's name", fmt.Sprintf(form, "", about, "kubelet", "keyturn.dev/actuator", ""), true},
		{"of a controller beside Keyturn's name", fmt.Sprintf(form, "", about, "keyturn", "deployment-controller", ""), true},
		{"about a node", fmt.Sprintf(form, "", node, "keyturn", "keyturn.dev/actuator", ""), true},
		{"with a label", fmt.Sprintf(form, ", labels: {a: b}", about, "keyturn", "keyturn.dev/actuator", ""), true},
		{"with an annotation", fmt.Sprintf(form, ", annotations: {a: b}", about, "keyturn", "keyturn.dev/actuator", ""), true},
		{"with a related object", fmt.Sprintf(form, "", about, "keyturn", "keyturn.dev/actuator", "related: {kind: Pod, name: a}\n"), true},
		{"with a finalizer", fmt.Sprintf(form, ", finalizers: [example.org/a]", about, "keyturn", "keyturn.dev/actuator", ""), true},
		// The API server keeps each for an hour, and bounds none of this.
		{"with the longest message", strings.Replace(ours, "message: m", "message: "+strings.Repeat("é", 512), 1), false},
		{"with a longer message", strings.Replace(ours, "message: m", "message: "+strings.Repeat("é", 512)+"e", 1), true},
		{"with a reason that is a book", strings.Replace(ours, "reason: Rolled", "reason: "+strings.Repeat("R", 129), 1), true},
		{"with an action that is a book", ours + "action: " + strings.Repeat("x", 129) + "\n", true},
		{"with a trace that is a book", fmt.Sprintf(form, ", annotations: {keyturn.dev/traceparent: "+strings.Repeat("x", 129)+"}", about,
			"keyturn", "keyturn.dev/actuator", ""), true},
		{"about a field", fmt.Sprintf(form, "", about+", fieldPath: a", "keyturn", "keyturn.dev/actuator", ""), true},
		{"about a name that is a book", fmt.Sprintf(form, "", about+", uid: "+strings.Repeat("x", 129), "keyturn", "keyturn.dev/actuator", ""), true},
		{"of a host that is a book", strings.Replace(ours, "component: keyturn}", "component: keyturn, host: "+strings.Repeat("x", 254)+"}", 1), true},
		{"with owners of fields that are a book", fmt.Sprintf(form, bookOfOwners("v1"), about, "keyturn", "keyturn.dev/actuator", ""), true},
	}
}

// Other programs act on Events: whoever forges one speaks for a kubelet, or for a controller.
func TestTheActuatorsTokenWritesNoEventsOfOthers(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	tests := forgedEvents(c.namespace)
	for _, tt := range tests {
		if err := c.create(c.namespace, kubeEvents, tt.event); err != nil {
			t.Errorf("without the policy an Event %s: %v", tt.name, err)
		}
	}
	c.confine("")
	for _, tt := range tests {
		t.Run("an Event "+tt.name, func(t *testing.T) {
			if err := c.create(c.namespace, kubeEvents, tt.event); c.refused(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("got %v, want refused %v", err, tt.refused)
			}
		})
	}
}

// The operator makes a new password whenever such an ExternalSecret is synced.
func TestTheActuatorsTokenHasNoPasswordMade(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	generated := "dataFrom: [{sourceRef: {generatorRef: {apiVersion: generators.external-secrets.io/v1alpha1, kind: Password, name: a}}}]"
	c.apply("apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: generated, namespace: " + c.namespace +
		", annotations: {owner: shop}}\nspec: {refreshInterval: 0s, " + generated + "}\n---\n" +
		"apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: " + c.system + "-generated, annotations: {owner: shop}}\n" +
		"spec: {externalSecretSpec: {refreshInterval: 0s, " + generated + "}}\n")
	one := target{externalOf.resource, "generated", ""}
	each := target{externalOf.resource.GroupVersion().WithResource("clusterexternalsecrets"), c.system + "-generated", ""}
	const sync = `{op: add, path: /metadata/annotations/external-secrets.io~1force-sync, value: x}`
	c.confine("")
	if err := c.patch(c.namespace, one, sync); !c.refused(err) {
		t.Errorf("a sync of an ExternalSecret with a generator: got %v, want that the policy refuses it", err)
	}
	if err := c.patch(metav1.NamespaceNone, each, sync); !c.refused(err) {
		t.Errorf("a sync of a ClusterExternalSecret with a generator: got %v, want that the policy refuses it", err)
	}
}
