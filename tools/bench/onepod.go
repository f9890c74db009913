package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// podChanges is how many changes the pod has made when its memory is measured.
const podChanges = 300

// podSize is a cluster in which the memory of one pod is measured.
type podSize struct {
	workloads, secrets int
	// most is how much memory it may use right after a burst, in MB.
	most float64
}

// podSecretSize is the size of each Secret in bytes.
const podSecretSize = 1000

var podSizes = []podSize{{workloads: 100, secrets: 500, most: 55}, {workloads: 1000, secrets: 1000, most: 75}}

// name returns the name in results of the resident memory, in MB.
func (s podSize) name() string { return fmt.Sprintf("%s of %d and %d", onePod, s.workloads, s.secrets) }

// pod is both programs with their NATS in one process.
type pod struct {
	runs
	reloader  *programs.Reloader
	dir, nats string
}

// podRights lets the account keep its keys in Secrets.
const podRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: keys, namespace: ` + programs.SystemNamespace + `}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [""], resources: [secrets], resourceNames: [keyturn-fingerprint-key, keyturn-nats-reader, keyturn-nats-storage], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: keys, namespace: ` + programs.SystemNamespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keys}
subjects: [{kind: ServiceAccount, name: reloader, namespace: ` + programs.SystemNamespace + `}]
`

func newPod(ctx context.Context, cp *testbed.ControlPlane) (*pod, error) {
	p := &pod{runs: runs{called: contenderPod, accounts: []string{"reloader"}}, dir: programsDir(cp)}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	p.nats = process.Address(port)
	if p.reloader, err = programs.NewReloaderFrom(ctx, cp, "deploy", keyturnBinary); err != nil {
		return nil, err
	}
	return p, cp.ApplyYAML(ctx, strings.NewReader(podRights))
}

func (p *pod) start(ctx context.Context) error {
	err := p.begin(p.reloader.Run(p.dir, programs.SystemNamespace, p.nats, "--log-level", "info", "--leader-elect=false", "--settle", "0s",
		"--max-rolls-per-hour", "0", "--max-rollouts", "0", "--selector", contenderLabel+"!="+contenderFloor))
	if err != nil {
		return err
	}
	return p.ready(ctx)
}

// measurePods measures the memory of one pod in clusters of each size.
func (b *bench) measurePods(ctx context.Context) error {
	for _, size := range podSizes {
		if err := b.measurePod(ctx, size); err != nil {
			return fmt.Errorf("with %d workloads: %w", size.workloads, err)
		}
	}
	return nil
}

// measurePod measures the memory of one pod right after a burst.
func (b *bench) measurePod(ctx context.Context, size podSize) error {
	// Each workload reads a Secret, and nothing reads the others.
	content := clusterOf(b.settings.scale, float64(size.workloads), float64(size.secrets-size.workloads), podSecretSize)
	content.secretSize = podSecretSize
	m, stop, err := b.newPlane(ctx, fmt.Sprintf("controlplane-pod-%d", size.workloads), content, unaudited)
	if err != nil {
		return err
	}
	defer stop()
	if err := m.cluster.addBystanders(ctx); err != nil {
		return err
	}
	p, err := newPod(ctx, m.cp)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := m.startCalm(ctx, p); err != nil {
		return err
	}
	for changed := 0; changed < int(podChanges*b.settings.scale); {
		n, err := m.burst(ctx, p, size.name()+", burst", podChanges)
		if err != nil {
			return err
		}
		changed += n
	}
	return m.addMemory(p, size.name())
}

// podLines returns the lines about one pod.
func (r *report) podLines() []line {
	var lines []line
	for _, size := range podSizes {
		samples := r.results.of(size.name(), contenderPod)
		what := fmt.Sprintf("Resident memory of one pod right after %d changes, with %d workloads and %d Secrets of %d kB",
			podChanges, size.workloads, size.secrets, podSecretSize/1000)
		lines = append(lines, line{
			What: what, Keyturn: figure("%.0f MB", samples),
			Target: fmt.Sprintf("at most %g MB", size.most), Verdict: verdict(median(samples) <= size.most),
		}, line{What: "Of which anonymous", Keyturn: figure("%.0f MB", r.results.of(size.name()+anonymous, contenderPod))})
	}
	return lines
}
