package install

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// exampleNamespace is the namespace of the workloads in examples.
const exampleNamespace = "example"

// TestTheCommandsOfThePagesWork runs the commands of README.md, applies each example, and runs the commands of the other pages. The operators of the
// examples do not run: the test writes the Secrets that they would. No programs run where pages go on: their commands only have to be taken.
func TestTheCommandsOfThePagesWork(t *testing.T) {
	r := newRelease(t)
	t.Cleanup(r.removeRolesOfOnePod)
	r.namespace = exampleNamespace
	r.volume()
	c := newCommands(r, "../../README.md")
	c.link("examples", "../../examples")

	// tests/image makes the image.
	if built := c.next("make image"); built != "make image VERSION=devel && kind load image-archive bin/image/keyturn.tar" {
		t.Errorf("the quickstart builds the image by %q", built)
	}
	var one *programs.Program
	r.part("Keyturn is installed", func() {
		c.run("kubectl apply -k deploy/single")
		one = r.runTheOnePod()
	})
	r.part("the workload of the quickstart rolls", func() {
		c.run("kubectl apply -f examples/secret.yaml")
		c.run("kubectl -n example patch secret db")
		c.next("kubectl -n example get events --field-selector reason=RolloutCompleted --watch") // It does not end.
		r.caused("web", "secret/db (password)")
	})
	r.part("the README shows what it did", func() {
		c.plugin()
		r.kubelet.forwards()
		testkit.Await(t, "explain says that it is rolled out", func(context.Context) bool {
			return strings.Contains(c.shell("kubectl keyturn explain deployment/web -n example"), "for secret/db: completed (rolled-out)")
		})
		c.run("kubectl keyturn explain deployment/web -n example")
		out := c.shell(c.next("kubectl keyturn history"))
		for _, want := range []string{"secret/db", "deployment/web", "completed"} {
			if !strings.Contains(out, want) {
				t.Errorf("want %q in the history:\n%s", want, out)
			}
		}
		c.run("kubectl keyturn timeline")
	})
	r.part("the tutorial of one pod works", func() { r.getsStarted() })
	r.part("two pods take over, for the other pages", func() {
		one.StopIn(t, testkit.Patience)
		c.shell("kubectl apply -k deploy/base")
		c.shell("kubectl -n keyturn-system delete deployment keyturn")
		r.runTwoPods()
		before := r.revisions()
		r.secret("db", "fourth") // For their history.
		r.rolled(before, "web")
		r.kubelet.awaitAnswer("for secret/db: completed (rolled-out)", "explain", "deployment/web", "-n", exampleNamespace)
	})
	r.part("kubectl keyturn shows the same, and says which right is missing", r.pluginAnswers)
	r.part("the runbooks of critical alerts show what is wrong", r.runbooks)
	r.part("the examples are applied, and roll", func() { r.examples(c) })
	r.part("the actuator takes the configuration of the example with notifications", func() { r.notifies(c) })
	r.part("the commands of the other pages work", r.pagesWork)
	r.part("the example with another NATS is applied, and gets its keys", func() {
		c.shell("kubectl apply -k examples/external-nats")
		r.pageWorks("docs/how-to/many-clusters.md")
	})
	r.part("the quickstart is removed", func() {
		c.shell(c.next("kubectl delete --ignore-not-found -f") + " --wait=false")
		c.run("kubectl delete --ignore-not-found -k")
	})
}

// getsStarted runs the commands of the first tutorial, where the commands of the README have installed one pod.
func (r *release) getsStarted() {
	r.Helper()
	const page = "docs/tutorials/get-started.md"
	c := newCommands(r, "../../"+page)
	c.link("examples", "../../examples")
	c.plugin()
	for _, command := range c.left {
		if command.Inline || docpages.Tested[page].Why(command.Line) != "" {
			continue
		}
		c.shell(command.Line)
	}
	testkit.Await(r.T, "the released workload is rolled", func(context.Context) bool {
		return strings.Contains(c.shell("kubectl keyturn explain deployment/web -n example"), "Nothing is pending")
	})
}

// examples applies the examples, and changes what their workloads read.
func (r *release) examples(c *commands) {
	r.Helper()
	for operator, kinds := range map[string][]string{
		build.ExternalSecrets: {"ExternalSecret", "SecretStore"}, build.CertManager: {"Certificate", "Issuer"}, build.ArgoCD: {"Application"},
	} {
		testkit.Must(r, plane.ApplyKindsOf(r.Context(), operator, kinds...))
	}
	for _, one := range []struct{ file, secret, deployment string }{
		{"external-secret.yaml", "mail", "mail"},
		{"certificate.yaml", "proxy-tls", "proxy"},
	} {
		r.secret(one.secret, "one")
		c.shell("kubectl apply -f examples/" + one.file + " && kubectl -n example rollout status deployment/" + one.deployment)
		r.secret(one.secret, "two")
		r.caused(one.deployment, "secret/"+one.secret)
	}
	c.shell("kubectl apply -f examples/windows-and-holds.yaml && kubectl -n example rollout status deployment/recommendations")
	c.shell(`kubectl -n example patch configmap features -p '{"data":{"checkout":"new"}}'`)
	r.caused("recommendations", "configmap/features")
	testkit.Await(r.T, "the hold is told", func(context.Context) bool {
		return strings.Contains(c.shell("kubectl -n example get events --field-selector reason=RolloutHeld"), "load test, ask Ada")
	})

	c.shell("kubectl create namespace argocd --dry-run=client -o yaml | kubectl apply -f -")
	c.shell("kubectl apply -f examples/argo-cd.yaml && kubectl delete -f examples/argo-cd.yaml")
}

// notifies applies the example with the notifications, whose file the actuator reads when it starts.
func (r *release) notifies(c *commands) {
	r.Helper()
	c.shell("kubectl apply -k examples/notifications && kubectl -n keyturn-system rollout status statefulset/keyturn-actuator")
	r.stop()
	r.actuator, r.watcher = r.kubelet.runReady("actuator"), r.kubelet.runReady("watcher")
}

// caused waits until a Deployment was rolled for a source, as its pod template says.
func (r *release) caused(deployment, source string) {
	r.Helper()
	var last string
	testkit.Await(r.T, deployment+" is rolled", func(ctx context.Context) bool {
		object, err := r.kube.AppsV1().Deployments(exampleNamespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return false
		}
		last = object.Spec.Template.Annotations["keyturn.dev/cause"]
		return strings.HasPrefix(last, source)
	}, func() string { return "its cause is " + last })
}
