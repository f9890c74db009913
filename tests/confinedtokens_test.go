package tests

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wantMissingRight fails the test unless an error is that an account has no permission.
func (c *confined) wantMissingRight(to target, verb string, err error) {
	c.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot "+verb+" resource") {
		c.Errorf("%s of %s: got %v, want that there is no permission", verb, to.resource.Resource, err)
	}
}

// What Keyturn writes: a record with the mark of the last roll, and the marks of a roll AT the metadata of an object or of its pod template.
const (
	recordOf = `{op: add, path: /metadata/annotations/keyturn.dev~1rolled, value: x}, ` +
		`{op: add, path: /metadata/annotations/keyturn.dev~1reverted, value: x}, ` +
		`{op: add, path: /metadata/annotations/keyturn.dev~1last, value: x}`
	marksOf = `{op: add, path: AT/annotations/keyturn.dev~1revision, value: x}, {op: add, path: AT/annotations/keyturn.dev~1cause, value: x}, ` +
		`{op: add, path: AT/annotations/keyturn.dev~1traceparent, value: x}`
)

// allowed calls try with each patch that Keyturn makes.
func allowed(try func(to target, patch forged)) {
	onTemplate, onObject := strings.ReplaceAll(marksOf, "AT", "TEMPLATE/metadata"), strings.ReplaceAll(marksOf, "AT", "/metadata")
	for _, to := range templated {
		try(to, forged{"records", recordOf})
		try(to, forged{"rolls", recordOf + "," + onTemplate})
		try(to, forged{
			"rolls because somebody asked for it, with an interval and a limit",
			recordOf + `, {op: add, path: /metadata/annotations/keyturn.dev~1rolled-now, value: x}, ` +
				`{op: add, path: /metadata/annotations/keyturn.dev~1rolled-at, value: x}, ` +
				`{op: add, path: /metadata/annotations/keyturn.dev~1rolls, value: x}, ` + onTemplate,
		})
	}
	try(cronJob, forged{"records that a Job was started", recordOf + "," + onObject})
	try(job, forged{"tries how a Job is to be made anew", recordOf + "," + onObject})
	try(argoRolloutOf, forged{"restarts", recordOf + "," + onObject + `, {op: add, path: /spec/restartAt, value: '2026-11-23T00:00:00Z'}`})
	try(externalOf, forged{"forces a sync", `{op: add, path: /metadata/annotations/external-secrets.io~1force-sync, value: x}, ` +
		`{op: add, path: /metadata/annotations/keyturn.dev~1synced-from, value: x}, ` +
		`{op: add, path: /metadata/annotations/keyturn.dev~1cause, value: x}, ` +
		`{op: add, path: /metadata/annotations/keyturn.dev~1traceparent, value: x}`})
}

// Whoever has the token of the actuator can do what Keyturn does, and no more. Without the policy nothing of that is true: each of the forged
// patches then succeeds.
func TestTheActuatorsTokenDoesOnlyWhatKeyturnDoes(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	forgeries(func(to target, patch forged) {
		if err := c.patch(c.namespace, to, patch.operations); err != nil {
			t.Errorf("without the policy a patch that %s of %s: got %v, want that it succeeds", patch.name, to.resource.Resource, err)
		}
	})
	for _, namespace := range []string{c.system, c.labeled, metav1.NamespaceSystem} {
		if err := c.patch(namespace, deployment, ofTemplates[0].operations); err != nil {
			t.Errorf("without the policy a patch in %s: got %v, want that it succeeds", namespace, err)
		}
	}
	c.confine("")

	count := 0
	forgeries(func(to target, patch forged) {
		count++
		if err := c.patch(c.namespace, to, patch.operations); !c.refused(err) {
			t.Errorf("a patch that %s of %s: got %v, want that the policy refuses it", patch.name, to.resource.Resource, err)
		}
	})
	if count < 130 {
		t.Errorf("got %d forged patches, want all", count)
	}
	allowed(func(to target, patch forged) {
		if err := c.patch(c.namespace, to, patch.operations); err != nil {
			t.Errorf("a patch that %s of %s: got %v, want that it succeeds", patch.name, to.resource.Resource, err)
		}
		for _, namespace := range []string{c.system, c.labeled, metav1.NamespaceSystem} {
			if err := c.patch(namespace, to, patch.operations); !c.refused(err) {
				t.Errorf("a patch that %s of %s in %s: got %v, want that the policy refuses it", patch.name, to.resource.Resource, namespace, err)
			}
		}
	})
	c.creates()
	c.clusterwide()
}

// clusterwide checks what may be changed of a ClusterExternalSecret.
func (c *confined) clusterwide() {
	c.Helper()
	to := target{externalOf.resource.GroupVersion().WithResource("clusterexternalsecrets"), c.system, ""}
	c.apply("apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: " + to.name + ", annotations: {owner: shop}}\n" +
		"spec: {externalSecretSpec: {refreshInterval: 0s, secretStoreRef: {name: none}}}\n")
	if err := c.patch(metav1.NamespaceNone, to, `{op: add, path: /metadata/annotations/external-secrets.io~1force-sync, value: x}`); err != nil {
		c.Errorf("a sync of a ClusterExternalSecret: %v", err)
	}
	for _, operations := range []string{
		`{op: add, path: /metadata/annotations/a, value: b}`, `{op: add, path: /spec/externalSecretName, value: b}`,
		`{op: add, path: /spec/namespaces, value: [bank]}`,
	} {
		if err := c.patch(metav1.NamespaceNone, to, operations); !c.refused(err) {
			c.Errorf("%s of a ClusterExternalSecret: got %v, want that the policy refuses it", operations, err)
		}
	}
}

// creates checks what may be created and deleted.
func (c *confined) creates() {
	c.Helper()
	made := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: made}\nspec: {suspend: true, " + confinedTemplate("Never") + "}\n"
	for _, namespace := range []string{c.system, c.labeled, metav1.NamespaceSystem} {
		if err := c.create(namespace, job.resource, made); !c.refused(err) {
			c.Errorf("a Job in %s: got %v, want that the policy refuses it", namespace, err)
		}
		if err := c.remove(namespace, job); !c.refused(err) {
			c.Errorf("the end of a Job in %s: got %v, want that the policy refuses it", namespace, err)
		}
	}
	if err := c.remove(c.namespace, controlledJob); !c.refused(err) {
		c.Errorf("the end of a controlled Job: got %v, want that the policy refuses it", err)
	}
	if err := c.remove(c.namespace, job); err != nil {
		c.Errorf("the end of a Job: %v", err)
	}
	if err := c.create(c.namespace, job.resource, made); err != nil {
		c.Errorf("a Job: %v", err)
	}
	lease := "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: NAME}\n"
	for _, own := range []string{c.system + "-actuator", c.system + "-actuator-dry-run"} {
		if err := c.create(c.system, leases, strings.Replace(lease, "NAME", own, 1)); err != nil {
			c.Errorf("its Lease %s: %v", own, err)
		}
	}
	if err := c.create(c.system, leases, strings.Replace(lease, "NAME", "other", 1)); !c.refused(err) {
		c.Errorf("another Lease: got %v, want that the policy refuses it", err)
	}
}

// With the chart, the namespace of the release may be one that is served. A Job in it could run with the account of the watcher.
func TestTheActuatorsTokenStartsNoJobBesideKeyturn(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	c.confine("", "values: [keyturn-system]", "values: [none]")
	made := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: made}\nspec: {suspend: true, " + confinedTemplate("Never") + "}\n"
	if err := c.create(c.system, job.resource, made); !c.refused(err) {
		t.Errorf("a Job beside Keyturn: got %v, want that the policy refuses it", err)
	}
	if err := c.create(c.namespace, job.resource, made); err != nil {
		t.Errorf("a Job elsewhere: %v", err)
	}
	allowed(func(to target, patch forged) {
		if err := c.patch(c.system, to, patch.operations); err != nil {
			t.Errorf("a patch that %s of %s beside Keyturn: got %v, want that it succeeds", patch.name, to.resource.Resource, err)
		}
	})
	referring := target{argoRolloutOf.resource, "referring", "/spec/template"}
	c.apply("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: referring, namespace: " + c.namespace + "}\n" +
		"spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {canary: {}}}\n")
	template := `{op: add, path: TEMPLATE, value: {metadata: {annotations: {keyturn.dev/cause: x}}}}`
	if err := c.patch(c.namespace, referring, template); !c.refused(err) {
		t.Errorf("a template beside that of a Deployment, which ends the rollout: got %v, want that the policy refuses it", err)
	}
}

func TestReloadersStrategiesAreAllowedByName(t *testing.T) {
	t.Parallel()
	const (
		marker    = `{op: add, path: TEMPLATE/metadata/annotations/reloader.stakater.com~1last-reloaded-from, value: x}`
		pause     = `{op: add, path: /metadata/annotations/deployment.reloader.stakater.com~1paused-at, value: x}`
		unpause   = `{op: remove, path: /metadata/annotations/deployment.reloader.stakater.com~1paused-at}`
		first     = `{op: add, path: TEMPLATE/spec/containers/1/env, value: [{name: STAKATER_DB_SECRET, value: ` + digest + `}]}`
		another   = `{op: add, path: TEMPLATE/spec/containers/0/env/-, value: {name: STAKATER_APP_CONFIGMAP, value: ` + digest + `}}`
		anything  = `{op: add, path: TEMPLATE/spec/containers/0/env/-, value: {name: STAKATER_APP_CONFIGMAP, value: sh}}`
		reference = `{op: add, path: TEMPLATE/spec/containers/0/env/-, ` +
			`value: {name: STAKATER_DB_SECRET, valueFrom: {secretKeyRef: {name: a, key: b}}}}`
	)
	for _, tt := range []struct {
		strategy         string
		allowed, refused []string
	}{
		{"annotations", []string{marker}, []string{first, another, anything, reference}},
		{"env-vars", []string{marker, first, another}, []string{anything, reference}},
	} {
		t.Run(tt.strategy, func(t *testing.T) {
			t.Parallel()
			c := newConfined(t)
			c.confine(tt.strategy)
			for _, to := range templated {
				for _, operations := range tt.allowed {
					if err := c.patch(c.namespace, to, operations); err != nil {
						t.Errorf("%s of %s: %v", operations, to.resource.Resource, err)
					}
				}
				for _, operations := range tt.refused {
					if err := c.patch(c.namespace, to, operations); !c.refused(err) {
						t.Errorf("%s of %s: got %v, want that the policy refuses it", operations, to.resource.Resource, err)
					}
				}
			}
			// Only what is there can be removed.
			for _, operations := range []string{pause, unpause} {
				if err := c.send(c.namespace, deployment, operations); err != nil {
					t.Errorf("%s of a Deployment: %v", operations, err)
				}
			}
			if err := c.patch(c.namespace, statefulSet, pause); !c.refused(err) {
				t.Errorf("a pause of a StatefulSet: got %v, want that the policy refuses it", err)
			}
			known := map[string]bool{
				"restarts as Reloader": true, "pauses as Reloader": true, "sets a variable as Reloader": tt.strategy == "env-vars",
			}
			forgeries(func(to target, patch forged) {
				if err := c.patch(c.namespace, to, patch.operations); !known[patch.name] && !c.refused(err) {
					t.Errorf("a patch that %s of %s: got %v, want that the policy refuses it", patch.name, to.resource.Resource, err)
				}
			})
			allowed(func(to target, patch forged) {
				if err := c.patch(c.namespace, to, patch.operations); err != nil {
					t.Errorf("a patch that %s of %s: got %v, want that it succeeds", patch.name, to.resource.Resource, err)
				}
			})
		})
	}
}
