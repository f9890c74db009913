package tests

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// digest is as those are that are written for Reloader's variables.
const digest = "0123456789abcdef0123456789abcdef01234567"

// A forged is a patch that someone with the actuator's token may try.
type forged struct{ name, operations string }

// ofAnything are forged patches of any object, and ofTemplates of what has a pod template.
var (
	ofAnything = []forged{
		{"adds a label", `{op: add, path: /metadata/labels/a, value: b}`},
		{"changes a label", `{op: replace, path: /metadata/labels/team, value: b}`},
		{"removes the labels", `{op: remove, path: /metadata/labels}`},
		{"adds an annotation of others", `{op: add, path: /metadata/annotations/a, value: b}`},
		{"changes an annotation of others", `{op: replace, path: /metadata/annotations/owner, value: b}`},
		{"removes an annotation of others", `{op: remove, path: /metadata/annotations/owner}`},
		{"opts in", `{op: add, path: /metadata/annotations/keyturn.dev~1roll-on, value: auto}`},
		{"changes the wave", `{op: add, path: /metadata/annotations/keyturn.dev~1wave, value: '-1'}`},
		{"changes a hold", `{op: replace, path: /metadata/annotations/keyturn.dev~1hold, value: x}`},
		{"takes a hold off", `{op: remove, path: /metadata/annotations/keyturn.dev~1hold}`},
		{"asks for a roll", `{op: add, path: /metadata/annotations/keyturn.dev~1roll-now, value: x}`},
		{"pauses as Reloader", `{op: add, path: /metadata/annotations/deployment.reloader.stakater.com~1paused-at, value: x}`},
		{"adds a finalizer", `{op: add, path: /metadata/finalizers, value: [example.org/a]}`},
		{"adds an owner", `{op: add, path: /metadata/ownerReferences, value: [{apiVersion: v1, kind: Pod, name: a, uid: a}]}`},
	}
	ofTemplates = []forged{
		{"replaces the image", `{op: replace, path: TEMPLATE/spec/containers/0/image, value: b}`},
		{"sets the command", `{op: add, path: TEMPLATE/spec/containers/0/command, value: [sh]}`},
		{"sets arguments", `{op: add, path: TEMPLATE/spec/containers/0/args, value: [-c]}`},
		{"adds a variable", `{op: add, path: TEMPLATE/spec/containers/0/env/-, value: {name: A, value: b}}`},
		{"changes a variable", `{op: replace, path: TEMPLATE/spec/containers/0/env/0/value, value: b}`},
		{"removes the variables", `{op: remove, path: TEMPLATE/spec/containers/0/env}`},
		{
			"reads a Secret into a variable",
			`{op: add, path: TEMPLATE/spec/containers/0/env/-, value: {name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}}`,
		},
		{"reads a Secret into the environment", `{op: add, path: TEMPLATE/spec/containers/0/envFrom, value: [{secretRef: {name: a}}]}`},
		{
			"sets a variable as Reloader",
			`{op: add, path: TEMPLATE/spec/containers/1/env, value: [{name: STAKATER_DB_SECRET, value: ` + digest + `}]}`,
		},
		{"adds a volume", `{op: add, path: TEMPLATE/spec/volumes, value: [{name: a, secret: {secretName: a}}]}`},
		{"mounts a Secret", `{op: add, path: TEMPLATE/spec/volumes, value: [{name: a, secret: {secretName: a}}]}, ` +
			`{op: add, path: TEMPLATE/spec/containers/0/volumeMounts, value: [{name: a, mountPath: /a}]}`},
		{"mounts the node", `{op: add, path: TEMPLATE/spec/volumes, value: [{name: a, hostPath: {path: /}}]}`},
		{"replaces the service account", `{op: add, path: TEMPLATE/spec/serviceAccountName, value: a}`},
		{"mounts the token", `{op: add, path: TEMPLATE/spec/automountServiceAccountToken, value: true}`},
		{"shares the processes of the node", `{op: add, path: TEMPLATE/spec/hostPID, value: true}`},
		{"shares the network of the node", `{op: add, path: TEMPLATE/spec/hostNetwork, value: true}`},
		{"is privileged", `{op: add, path: TEMPLATE/spec/containers/0/securityContext, value: {privileged: true}}`},
		{"runs as root", `{op: add, path: TEMPLATE/spec/securityContext, value: {runAsUser: 0}}`},
		{"adds a container", `{op: add, path: TEMPLATE/spec/containers/-, value: {name: a, image: b}}`},
		{"removes a container", `{op: remove, path: TEMPLATE/spec/containers/1}`},
		{"adds an init container", `{op: add, path: TEMPLATE/spec/initContainers, value: [{name: a, image: b}]}`},
		{"changes resources", `{op: add, path: TEMPLATE/spec/containers/0/resources, value: {limits: {memory: 1Mi}}}`},
		{"chooses the node", `{op: replace, path: TEMPLATE/spec/nodeSelector/no, value: here}`},
		{"tolerates any node", `{op: add, path: TEMPLATE/spec/tolerations, value: [{operator: Exists}]}`},
		{"adds a pull secret", `{op: add, path: TEMPLATE/spec/imagePullSecrets, value: [{name: a}]}`},
		{"changes the grace period", `{op: add, path: TEMPLATE/spec/terminationGracePeriodSeconds, value: 0}`},
		{"labels the pods", `{op: add, path: TEMPLATE/metadata/labels/a, value: b}`},
		{"annotates the pods", `{op: add, path: TEMPLATE/metadata/annotations/a, value: b}`},
		{"changes an annotation of the pods", `{op: replace, path: TEMPLATE/metadata/annotations/owner, value: b}`},
		{"removes the annotations of the pods", `{op: remove, path: TEMPLATE/metadata/annotations}`},
		{"restarts as kubectl", `{op: add, path: TEMPLATE/metadata/annotations/kubectl.kubernetes.io~1restartedAt, value: x}`},
		{"restarts as Reloader", `{op: add, path: TEMPLATE/metadata/annotations/reloader.stakater.com~1last-reloaded-from, value: x}`},
		{"opts in by the pod template", `{op: add, path: TEMPLATE/metadata/annotations/keyturn.dev~1roll-on, value: auto}`},
		{"hides an image in a roll", `{op: add, path: TEMPLATE/metadata/annotations/keyturn.dev~1revision, value: x}, ` +
			`{op: replace, path: TEMPLATE/spec/containers/0/image, value: b}`},
	}
)

// ofOne are forged patches of one kind.
var ofOne = []struct {
	target
	forged
}{
	{deployment, forged{"scales", `{op: replace, path: /spec/replicas, value: 9}`}},
	{deployment, forged{"pauses", `{op: add, path: /spec/paused, value: true}`}},
	{deployment, forged{"recreates", `{op: replace, path: /spec/strategy, value: {type: Recreate}}`}},
	{deployment, forged{"changes the deadline", `{op: add, path: /spec/progressDeadlineSeconds, value: 1}`}},
	{deployment, forged{"keeps no revisions", `{op: add, path: /spec/revisionHistoryLimit, value: 0}`}},
	{deployment, forged{"writes a revision on the object", `{op: add, path: /metadata/annotations/keyturn.dev~1revision, value: x}`}},
	{statefulSet, forged{"scales", `{op: replace, path: /spec/replicas, value: 9}`}},
	{statefulSet, forged{"does not roll", `{op: replace, path: /spec/updateStrategy, value: {type: OnDelete}}`}},
	{daemonSet, forged{"does not roll", `{op: replace, path: /spec/updateStrategy, value: {type: OnDelete}}`}},
	{cronJob, forged{"changes the schedule", `{op: replace, path: /spec/schedule, value: '* * * * *'}`}},
	{cronJob, forged{"resumes", `{op: replace, path: /spec/suspend, value: false}`}},
	{cronJob, forged{"labels the jobs", `{op: add, path: /spec/jobTemplate/metadata, value: {labels: {a: b}}}`}},
	{cronJob, forged{"multiplies the jobs", `{op: add, path: /spec/jobTemplate/spec/parallelism, value: 9}`}},
	{argoRolloutOf, forged{"scales", `{op: replace, path: /spec/replicas, value: 9}`}},
	{argoRolloutOf, forged{"pauses", `{op: add, path: /spec/paused, value: true}`}},
	{argoRolloutOf, forged{"takes another template", `{op: add, path: /spec/workloadRef, value: {apiVersion: apps/v1, kind: Deployment, name: a}}`}},
	{job, forged{"resumes", `{op: replace, path: /spec/suspend, value: false}`}},
	{externalOf, forged{"reads another secret", `{op: add, path: /spec/data, value: [{secretKey: a, remoteRef: {key: b}}]}`}},
	{externalOf, forged{"reads another store", `{op: replace, path: /spec/secretStoreRef/name, value: b}`}},
	{externalOf, forged{"changes the template", `{op: replace, path: /spec/target/template/data/a, value: c}`}},
	{externalOf, forged{"writes another Secret", `{op: add, path: /spec/target/name, value: b}`}},
	{externalOf, forged{"records a roll", `{op: add, path: /metadata/annotations/keyturn.dev~1rolled, value: x}`}},
}

// forgeries calls try with each forged patch.
func forgeries(try func(to target, patch forged)) {
	for _, to := range confinees {
		for _, patch := range ofAnything {
			try(to, patch)
		}
	}
	for _, to := range templated {
		for _, patch := range ofTemplates {
			try(to, patch)
		}
	}
	for _, patch := range ofOne {
		try(patch.target, patch.forged)
	}
}

func TestTheWatchersTokenWritesNothing(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	for _, to := range confinees {
		client, dry := c.watcher.Resource(to.resource).Namespace(c.namespace), []string{metav1.DryRunAll}
		record := []byte(`{"metadata":{"annotations":{"keyturn.dev/rolled":"x"}}}`)
		_, err := client.Patch(t.Context(), to.name, types.MergePatchType, record, metav1.PatchOptions{DryRun: dry})
		object, readErr := c.admin.Resource(to.resource).Namespace(c.namespace).Get(t.Context(), to.name, metav1.GetOptions{})
		if readErr != nil {
			t.Fatal(readErr)
		}
		_, updateErr := client.Update(t.Context(), object, metav1.UpdateOptions{DryRun: dry})
		object.SetResourceVersion("")
		_, createErr := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: dry})
		deleteErr := client.Delete(t.Context(), to.name, metav1.DeleteOptions{DryRun: dry})
		for verb, err := range map[string]error{"patch": err, "update": updateErr, "create": createErr, "delete": deleteErr} {
			c.wantMissingRight(to, verb, err)
		}
	}
}
