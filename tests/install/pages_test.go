package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		for _, namespace := range []string{shop.namespace, "try"} {
			err := r.kube.CoreV1().Namespaces().Delete(context.WithoutCancel(r.Context()), namespace, metav1.DeleteOptions{})
			if err != nil && !errors.IsNotFound(err) {
				r.Error(err)
			}
		}
	})
	for _, page := range []string{
		"docs/troubleshooting.md", "docs/when.md", "docs/notifications.md", "docs/secret-stores.md", "docs/migrate-from-others.md", "docs/upgrade.md",
		"docs/operations.md", "docs/install.md",
	} {
		r.pageWorks(page)
	}
}

// pageWorks runs the commands of a page, all but those that docpages.Tested leaves out.
func (r *release) pageWorks(page string) {
	r.Helper()
	c, tested := newCommands(r, "../../"+page), docpages.Tested[page]
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
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			c.Fatal(err)
		}
	}
	c.inNamespace("shop")
}

// inNamespace has commands that name no namespace run in one.
func (c *commands) inNamespace(name string) {
	c.Helper()
	config, err := os.ReadFile(plane.Kubeconfig())
	if err != nil {
		c.Fatal(err)
	}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	if err := os.WriteFile(c.kubeconfig, config, 0o600); err != nil {
		c.Fatal(err)
	}
	c.shell("kubectl config set-context --current --namespace=" + name)
}
