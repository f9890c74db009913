package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// substituting is a Kustomization that puts the password of secret/db into a ConfigMap, and looks again once an hour.
const substituting = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app, namespace: NAMESPACE}
spec: {interval: 1h, url: URL, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: NAMESPACE, annotations: {keyturn.dev/roll-on: auto}}
spec:
  interval: 1h
  prune: true
  targetNamespace: NAMESPACE
  sourceRef: {kind: GitRepository, name: app}
  postBuild: {substituteFrom: [{kind: Secret, name: db}]}
`

func TestFluxReconcilesAKustomizationWhenWhatItSubstitutesChanges(t *testing.T) {
	t.Parallel()
	git, err := testbed.ServeGit(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(git.Stop)
	repository, err := git.Repository(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {password: '${password}'}\n"
	if err := os.WriteFile(filepath.Join(repository.Dir, "applied.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := repository.Commit(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, scene{
		prepare: func(b *bench) {
			if err := programs.SetSecret(b.Context(), b.kube, b.namespace, "db", map[string]string{"password": "one"}); err != nil {
				b.Fatal(err)
			}
			manifests := strings.NewReplacer("NAMESPACE", b.namespace, "URL", repository.URL).Replace(substituting)
			if err := plane.ApplyYAML(b.Context(), strings.NewReader(manifests)); err != nil {
				b.Fatal(err)
			}
			b.args[watcherAccount] = []string{"--namespaces", b.namespace}
			b.args[actuatorAccount] = []string{"--targets-config", "../../deploy/targets/flux-kustomize/flux-kustomize.yaml"}
		},
		change: func(ctx context.Context, b *bench, _ int) {
			known := b.isTold(events.Source{Kind: events.KindSecret, Namespace: b.namespace, Name: "db"})
			if known && b.leads() && b.applied(ctx) == "one" {
				_ = programs.SetSecret(ctx, b.kube, b.namespace, "db", map[string]string{"password": "two"})
			}
		},
	}, rulesOf(t, "base/rbac.yaml", "targets/flux-kustomize/rbac.yaml"), "")
	b.run()
	testkit.Await(t, "Flux applies what the Secret has", func(ctx context.Context) bool { return b.applied(ctx) == "two" })
	reader, err := events.OpenFleet(t.Context(), b.connection, events.StreamChanges)
	if err != nil {
		t.Fatal(err)
	}
	subject := events.OutcomeSubject(benchCluster, events.Workload{Kind: "kustomization", Namespace: b.namespace, Name: "app"})
	testkit.Await(t, "the rollout is complete", func(ctx context.Context) bool {
		stored, err := reader.Last(ctx, subject)
		if err != nil {
			return false
		}
		outcome, err := stored.Outcome()
		return err == nil && outcome.Verb == events.VerbCompleted
	})
}

// applied returns what Flux has put into the ConfigMap, empty if there is none.
func (b *bench) applied(ctx context.Context) string {
	config, err := b.kube.CoreV1().ConfigMaps(b.namespace).Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return config.Data["password"]
}
