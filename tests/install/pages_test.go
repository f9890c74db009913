package install

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// overlay is what an operator has in the folder of the commands.
const overlay = "resources: [deploy/base]\n"

// pagesWork runs the commands of the pages. The last one ends the installation.
func (r *release) pagesWork() {
	r.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		r.Log("the commands of the other pages are not run: ", err)
		return
	}
	r.volumeNamed("disk-spare") // For the one that operations.md gives up.
	shop := workloads{r.T, r.kube, "shop"}
	shop.prepare()
	shop.apply()
	r.Cleanup(func() {
		err := r.kube.CoreV1().Namespaces().Delete(context.WithoutCancel(r.Context()), shop.namespace, metav1.DeleteOptions{})
		if err != nil && !errors.IsNotFound(err) {
			r.Error(err)
		}
	})
	for _, page := range []string{
		"docs/operate/troubleshooting.md", "docs/how-to/when-to-roll.md", "docs/how-to/notifications.md", "docs/how-to/audit-shippers.md",
		"docs/how-to/migrate-from-others.md", "docs/how-to/upgrade.md", "docs/tutorials/two-pods.md", "docs/operate/operations.md",
		"docs/how-to/high-availability.md", "docs/how-to/network-and-keys.md", "docs/how-to/install.md",
	} {
		r.pageWorks(page)
	}
	r.isProtected(metav1.NamespacePublic)
}

// isProtected holds that a namespace has the label by which the admission policy protects it.
func (r *release) isProtected(name string) {
	r.Helper()
	namespace, err := r.kube.CoreV1().Namespaces().Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	if _, is := namespace.Labels["keyturn.dev/protected"]; !is {
		r.Errorf("the command of the page does not protect %s", name)
	}
}

// pageWorks runs the commands of a page, all but those that docpages.Tested leaves out.
func (r *release) pageWorks(page string) {
	r.Helper()
	c, tested := newCommands(r, "../../"+page), docpages.Tested[page]
	c.plugin()
	c.inShop()
	for len(c.left) > 0 {
		// In a sentence, one without a flag is the name of a command.
		command := c.left[0]
		if tested.Why(command.Line) != "" || command.Inline && !strings.Contains(command.Line, " -") {
			c.left = c.left[1:]
			continue
		}
		if strings.Contains(command.Line, " exec keyturn-actuator-0 -- ") {
			r.kubelet.exec("actuator", c.inPod(command.Line)...)
			continue
		}
		c.run(command.Line)
	}
}

// inShop has commands that name no namespace run in shop, beside the files that pages have an operator make.
func (c *commands) inShop() {
	c.Helper()
	files := map[string]string{"kustomization.yaml": overlay}
	for _, name := range []string{"notify.yaml", "stores.yaml", "ca.crt", "tls.crt", "tls.key"} {
		files[name] = "nobody reads it\n"
	}
	for name, content := range files {
		testkit.WriteFile(c.T, filepath.Join(c.dir, name), content)
	}
	c.inNamespace("shop")
}

// inNamespace has commands that name no namespace run in one.
func (c *commands) inNamespace(name string) {
	c.Helper()
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	testkit.WriteFile(c.T, c.kubeconfig, testkit.ReadFile(c.T, plane.Kubeconfig()))
	c.shell("kubectl config set-context --current --namespace=" + name)
}
