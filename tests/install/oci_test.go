package install

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// registryOverlay extends keyturnOverlay for a release in a registry. Without TLS, Flux needs explicit permission.
const registryOverlay = `  - target: {kind: OCIRepository}
    patch: |-
      - {op: replace, path: /spec/url, value: "oci://HOST/keyturn/manifests"}
      - {op: add, path: /spec/insecure, value: true}
components: ["URL//deploy/flux/oci?ref=main"]
`

// goesOnFromARegistry checks that a switch from a repository to a registry changes nothing, that Flux takes nothing that is not signed, and that it
// sees what is pushed to the same tag later.
func (i *fluxInstallation) goesOnFromARegistry() {
	i.Helper()
	r, tool := releases.ServeRegistry(i.T), releases.New(i.T)
	before := i.watcherDeployment()
	push(r, i.keyturn.Dir, manifestsRepository, tool.Version)
	i.trusts(tool.Read(tool.Keys, "cosign.pub"))
	i.overlay(strings.ReplaceAll(registryOverlay, "HOST", r.Host))
	i.push("take deploy from a registry")
	i.eventually("flux refuses what is not signed", func(ctx context.Context) bool {
		source, err := i.client.Resource(ociRepositories).Namespace(testbed.FluxNamespace).Get(ctx, "keyturn", metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(source.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(condition any) bool {
			got := condition.(map[string]any)
			return got["type"] == "SourceVerified" && got["status"] == "False"
		})
	})
	revision := i.publish(r, tool)
	i.request(ociRepositories, "keyturn")
	i.isAt(revision)
	if _, err := i.client.Resource(gitRepositories).Namespace(testbed.FluxNamespace).Get(i.Context(), "keyturn", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		i.Errorf("the GitRepository keyturn: got %v, want that it is not there", err)
	}
	if now := i.watcherDeployment(); now.UID != before.UID || now.Generation != before.Generation {
		i.Errorf("the watcher was changed: it has generation %d, want %d", now.Generation, before.Generation)
	}

	const described = "Pushed to a registry."
	path := filepath.Join(i.keyturn.Dir, "deploy/base/priorityclass.yaml")
	testkit.WriteFile(i.T, path, regexp.MustCompile("(?m)^description: .*").ReplaceAllString(testkit.ReadFile(i.T, path), "description: "+described))
	revision = i.publish(r, tool)
	i.request(ociRepositories, "keyturn")
	i.isAt(revision)
	class, err := i.kube.SchedulingV1().PriorityClasses().Get(i.Context(), "keyturn", metav1.GetOptions{})
	if err != nil || class.Description != described {
		i.Errorf("the PriorityClass says %q, %v, want what was pushed: %q", class.Description, err, described)
	}
}

// manifestsRepository is where a release has deploy.
const manifestsRepository = "keyturn/manifests"

// publish makes a signed release of the repository, pushes it, and returns the revision that Flux has of it.
func (i *fluxInstallation) publish(r *releases.Registry, tool releases.Tool) (revision string) {
	i.Helper()
	tool.Prepare(i.keyturn.Dir)
	// A release does not replace another one.
	r.Remove(manifestsRepository, tool.Version)
	_, pushed := tool.Publish(tool.Make(r.Host, "-root", i.keyturn.Dir))
	return tool.Version + "@" + pushed[r.Host+"/"+manifestsRepository+":"+tool.Version]
}

// trusts makes the Secret with the key of the releases.
func (i *fluxInstallation) trusts(public []byte) {
	i.Helper()
	secrets := i.kube.CoreV1().Secrets(testbed.FluxNamespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-cosign"}, Data: map[string][]byte{"cosign.pub": public}}
	if _, err := secrets.Create(i.Context(), secret, metav1.CreateOptions{}); err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		if err := secrets.Delete(context.WithoutCancel(i.Context()), secret.Name, metav1.DeleteOptions{}); err != nil {
			i.Error(err)
		}
	})
}

// isAt waits until Flux has installed a revision.
func (i *fluxInstallation) isAt(revision string) {
	i.Helper()
	for _, name := range installed {
		i.eventually(name+" is ready at "+revision, func(ctx context.Context) bool {
			return i.field(ctx, name, "lastAppliedRevision") == revision && i.condition(ctx, name).Status == metav1.ConditionTrue
		})
	}
}

func (i *fluxInstallation) watcherDeployment() *appsv1.Deployment {
	i.Helper()
	deployment, err := i.kube.AppsV1().Deployments(programs.SystemNamespace).Get(i.Context(), "keyturn-watcher", metav1.GetOptions{})
	testkit.Must(i, err)
	return deployment
}
