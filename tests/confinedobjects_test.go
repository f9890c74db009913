package tests

import (
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// account has the token of one of the accounts.
func (c *confined) account(suffix string) *rest.Config {
	c.Helper()
	return configOf(c, c.system, c.system+suffix)
}

// confinedObjects are one object of each kind in a NAMESPACE. None of them starts pods.
var confinedObjects = strings.Join([]string{
	confinedObject("apps/v1", "Deployment", "web", "replicas: 0, "+confinedSelector+confinedTemplate("Always")),
	confinedObject("apps/v1", "StatefulSet", "queue", "replicas: 0, serviceName: queue, "+confinedSelector+confinedTemplate("Always")),
	confinedObject("apps/v1", "DaemonSet", "agent", confinedSelector+confinedTemplate("Always")),
	confinedObject("argoproj.io/v1alpha1", "Rollout", "canary", "replicas: 0, strategy: {canary: {}}, "+confinedSelector+confinedTemplate("Always")),
	confinedObject("batch/v1", "CronJob", "report", "schedule: '0 0 31 2 *', suspend: true, jobTemplate: {spec: {"+confinedTemplate("Never")+"}}"),
	confinedObject("batch/v1", "Job", "import", "suspend: true, "+confinedTemplate("Never")),
	strings.Replace(confinedObject("batch/v1", "Job", "controlled", "suspend: true, "+confinedTemplate("Never")), "labels:",
		// The garbage collector leaves it alone: it does not know the kind of its owner.
		"ownerReferences: [{apiVersion: example.org/v1, kind: Task, name: task, uid: '1', controller: true}], labels:", 1),
	confinedObject("external-secrets.io/v1", "ExternalSecret", "db",
		"refreshInterval: 0s, secretStoreRef: {name: none}, target: {template: {data: {a: b}}}"),
	confinedObject("coordination.k8s.io/v1", "Lease", "theirs", "holderIdentity: them"),
}, "---\n")

const confinedSelector = "selector: {matchLabels: {app: confined}}, "

func confinedObject(version, kind, name, spec string) string {
	const form = "apiVersion: %s\nkind: %s\n" +
		"metadata: {name: %s, namespace: NAMESPACE, labels: {team: shop}, annotations: {owner: shop, keyturn.dev/hold: migration}}\n" +
		"spec: {%s}\n"
	return fmt.Sprintf(form, version, kind, name, spec)
}

func confinedTemplate(restart string) string {
	return "template: {metadata: {labels: {app: confined}, annotations: {owner: shop}}, " +
		"spec: {restartPolicy: " + restart + ", nodeSelector: {no: where}, " +
		"containers: [{name: main, image: main, env: [{name: LEVEL, value: info}]}, {name: side, image: side}]}}"
}
