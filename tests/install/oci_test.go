package install

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// registryOverlay extends keyturnOverlay for a deploy in a registry. Without TLS, Flux needs explicit permission.
const registryOverlay = `  - target: {kind: OCIRepository}
    patch: |-
      - {op: replace, path: /spec/url, value: "oci://HOST/keyturn/manifests"}
      - {op: add, path: /spec/insecure, value: true}
components: ["URL//deploy/flux/oci?ref=main"]
`

// goesOnFromARegistry checks that a switch from a repository to a registry changes nothing, and that Flux sees what is pushed to
// the same tag later.
func (i *fluxInstallation) goesOnFromARegistry() {
	i.Helper()
	r := serveRegistry(i.T)
	before := i.watcherDeployment()
	revision := i.pushDeploy(r)
	i.overlay(strings.ReplaceAll(registryOverlay, "HOST", r.host))
	i.push("take deploy from a registry")
	i.isAt(revision)
	if _, err := i.client.Resource(gitRepositories).Namespace(testbed.FluxNamespace).Get(i.Context(), "keyturn", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		i.Errorf("the GitRepository keyturn: got %v, want that it is not there", err)
	}
	if now := i.watcherDeployment(); now.UID != before.UID || now.Generation != before.Generation {
		i.Errorf("the watcher was changed: it has generation %d, want %d", now.Generation, before.Generation)
	}

	const described = "Pushed to a registry."
	path := filepath.Join(i.keyturn.Dir, "deploy/base/priorityclass.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		i.Fatal(err)
	}
	content = regexp.MustCompile("(?m)^description: .*").ReplaceAll(content, []byte("description: "+described))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		i.Fatal(err)
	}
	revision = i.pushDeploy(r)
	i.request(ociRepositories, "keyturn")
	i.isAt(revision)
	class, err := i.kube.SchedulingV1().PriorityClasses().Get(i.Context(), "keyturn", metav1.GetOptions{})
	if err != nil || class.Description != described {
		i.Errorf("the PriorityClass says %q, %v, want what was pushed: %q", class.Description, err, described)
	}
}

// pushDeploy pushes deploy to the tag of deploy/flux/oci, and returns the revision.
func (i *fluxInstallation) pushDeploy(r *registry) (revision string) {
	i.Helper()
	return "devel@" + r.push(i.keyturn.Dir, "keyturn/manifests", "devel")
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
	if err != nil {
		i.Fatal(err)
	}
	return deployment
}
