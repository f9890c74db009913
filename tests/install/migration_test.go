package install

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestTheCommandsOfTheMigrationFromReloaderWork runs every command of docs/how-to/migrate-from-reloader.md. What is not as there: a release with
// Reloader's values stands in for Reloader, whose program does not run; and the
// kubelet of the pods is a server of this test.
func TestTheCommandsOfTheMigrationFromReloaderWork(t *testing.T) {
	r := newRelease(t)
	r.applyShopOfReloader()
	r.volume()
	c := newCommands(r, "../../docs/how-to/migrate-from-reloader.md")
	c.link("stakater", "testdata/stakater")
	c.link("set.yaml", "testdata/reloader-values.yaml")
	c.plugin()
	c.shell("helm install reloader stakater/reloader -n reloader --create-namespace --wait -f set.yaml --set reloader.syncAfterRestart=true")

	r.part("Keyturn is installed with the values of Reloader, and runs dry", func() {
		c.run("helm get values reloader")
		c.run("helm install keyturn")
		r.kubelet.awaitPods("keys", "actuator", "watcher")
		r.start()
		before := r.revisions()
		r.write("two")
		r.kubelet.forwards()
		r.compares(c, c.next("kubectl keyturn compare"))
		r.untouched(before, "web", "api")
	})
	r.part("it rolls after an upgrade", func() {
		c.run("helm upgrade keyturn")
		r.stop()
		r.actuator, r.watcher = r.kubelet.runReady("actuator"), r.kubelet.runReady("watcher")
		before := r.revisions()
		r.write("three")
		r.rolled(before, "web", "api")
	})
	r.part("Reloader ignores CronJobs", func() {
		c.run("helm upgrade reloader")
		r.awaitReloader("a replica that syncs still", syncs("true"))
	})
	stop := c.next("kubectl -n reloader scale")
	r.part("Reloader is stopped", func() {
		c.shell(stop)
		r.awaitReloader("no replica", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 0 && d.Status.Replicas == 0 })
	})
	r.part("what Reloader has left paused is resumed", func() {
		const key = "deployment.reloader.stakater.com/paused-at"
		c.inNamespace(r.namespace)
		c.shell("kubectl rollout pause deployment web")
		c.shell("kubectl annotate deployment web " + key + "=2026-03-14T15:09:26Z")
		if got, want := c.shell(c.next("kubectl get deployments -A")), r.namespace+" web 2026-03-14T15:09:26Z\n"; got != want {
			t.Errorf("paused are %q, want %q", got, want)
		}
		c.run("kubectl rollout resume")
	})
	r.part("Reloader is back", func() {
		c.run("kubectl -n reloader scale")
		r.awaitReloader("a replica that syncs", syncs("true"))
	})
	r.part("Reloader is back in the other way", func() {
		c.shell(stop)
		c.run("helm upgrade reloader")
		r.awaitReloader("a replica that does not sync", syncs("false"))
	})
	r.part("Keyturn is uninstalled", func() {
		r.stop()
		c.run("helm uninstall keyturn")
	})
	r.part("Reloader is uninstalled", func() { c.run("helm uninstall reloader") })
	if len(c.left) > 0 {
		t.Errorf("commands of the page that were not run: %+v", c.left)
	}
}

// syncs reports whether a Deployment has a ready replica of Reloader with that value of syncAfterRestart.
func syncs(value string) func(*appsv1.Deployment) bool {
	return func(d *appsv1.Deployment) bool {
		now := d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.ReadyReplicas == 1
		return now && d.Spec.Template.Spec.Containers[0].Args[0] == "--sync-after-restart="+value
	}
}

// compares waits until a comparison says that Keyturn alone would have rolled what Reloader's stand-in has not.
func (r *release) compares(c *commands, command string) {
	r.Helper()
	testkit.Await(r.T, "compare has both workloads", func(context.Context) bool {
		out := c.shell(command)
		return strings.Contains(out, "deployment/web") && strings.Contains(out, "deployment/api") && strings.Contains(out, "keyturn only")
	})
}

// awaitReloader waits until the Deployment of Reloader is as asked.
func (r *release) awaitReloader(what string, is func(*appsv1.Deployment) bool) {
	r.Helper()
	testkit.Await(r.T, "Reloader has "+what, func(ctx context.Context) bool {
		deployment, err := r.kube.AppsV1().Deployments("reloader").Get(ctx, "reloader-reloader", metav1.GetOptions{})
		return err == nil && is(deployment)
	})
}
