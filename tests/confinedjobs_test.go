package tests

import (
	"strings"
	"testing"
)

// nodeReaching are parts of a pod spec, or of its only container, by which a pod reaches its node or its kubelet's files.
var nodeReaching = []struct{ name, pod, container string }{
	{"shares the processes of the node", "hostPID: true", ""},
	{"shares the memory of the node", "hostIPC: true", ""},
	{"shares the network of the node", "hostNetwork: true", ""},
	{"mounts the node", "volumes: [{name: a, hostPath: {path: /}}]", ""},
	{"has a program of the node mount a volume", "volumes: [{name: a, flexVolume: {driver: example.com/any}}]", ""},
	{"has the kubelet clone a repository, with its hooks", "volumes: [{name: a, gitRepo: {repository: 'https://example.com/any'}}]", ""},
	{"names its node", "nodeName: control-plane", ""},
	{"sets what the kernel shares", "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}", ""},
	{"is privileged", "", "securityContext: {privileged: true}"},
	{"adds a capability", "", "securityContext: {capabilities: {add: [SYS_ADMIN]}}"},
	{"adds all capabilities", "", "securityContext: {capabilities: {add: [ALL]}}"},
	{"has a port of the node", "", "ports: [{containerPort: 80, hostPort: 80}]"},
	{"begins with a privileged container", "initContainers: [{name: first, image: a, securityContext: {privileged: true}}]", ""},
	{"begins with a capability", "initContainers: [{name: first, image: a, securityContext: {capabilities: {add: [SYS_PTRACE]}}}]", ""},
}

// ordinary are parts that Jobs have, and that reach no node.
var ordinary = []struct{ name, pod, container string }{
	{"has nothing of it", "", ""},
	{"chooses nodes", "nodeSelector: {pool: batch}, tolerations: [{key: batch, operator: Exists}]", ""},
	{"mounts a Secret and a folder", "volumes: [{name: a, secret: {secretName: a}}, {name: b, emptyDir: {}}]", ""},
	{"keeps a capability that it has anyway", "", "securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE, CHOWN]}}"},
	{"has a port", "", "ports: [{containerPort: 80}]"},
	{"is restricted", "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}", "securityContext: {privileged: false}"},
	{"sets what is its own", "securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}", ""},
}

// jobWith is a Job with a part of its pod spec and one of its container.
func jobWith(pod, container string) string {
	parts := []string{"restartPolicy: Never", "containers: [{" + strings.Join(nonEmpty("name: main, image: main", container), ", ") + "}]"}
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: made}\nspec: {suspend: true, template: {spec: {" +
		strings.Join(nonEmpty(append(parts, pod)...), ", ") + "}}}\n"
}

func nonEmpty(parts ...string) []string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return some
}

// Whoever is root on the node of the watcher has its token. The policy cannot read the CronJob for which a Job is created, so it bounds each Job.
func TestTheActuatorsTokenStartsNoJobThatReachesItsNode(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	for _, part := range nodeReaching {
		if err := c.create(c.namespace, job.resource, jobWith(part.pod, part.container)); err != nil {
			t.Errorf("without the policy a Job that %s: %v", part.name, err)
		}
	}
	c.confine("")
	for _, part := range nodeReaching {
		if err := c.create(c.namespace, job.resource, jobWith(part.pod, part.container)); !c.refused(err) {
			t.Errorf("a Job that %s: got %v, want that the policy refuses it", part.name, err)
		}
	}
	for _, part := range ordinary {
		if err := c.create(c.namespace, job.resource, jobWith(part.pod, part.container)); err != nil {
			t.Errorf("a Job that %s: %v", part.name, err)
		}
	}
}

func TestTheVariableOfThePolicyAllowsJobsThatReachTheirNode(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	const variable = "- name: nodeJobs\n      expression: "
	c.confine("", variable+`"false"`, variable+`"true"`)
	for _, part := range nodeReaching {
		if err := c.create(c.namespace, job.resource, jobWith(part.pod, part.container)); err != nil {
			t.Errorf("a Job that %s: %v", part.name, err)
		}
	}
	made := jobWith("hostPID: true", "")
	if err := c.create(c.system, job.resource, made); !c.refused(err) {
		t.Errorf("such a Job beside Keyturn: got %v, want that the policy refuses it", err)
	}
}
