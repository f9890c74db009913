package install

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/keyturn/keyturn/tests/testkit"
)

// pluginPage is the page of kubectl keyturn.
const pluginPage = "../../docs/reference/keyturn.md"

// plugin makes kubectl know its plugin, for the commands of pages.
func (c *commands) plugin() {
	c.Helper()
	testkit.Must(c, os.MkdirAll(c.plugins(), 0o750))
	testkit.Must(c, os.Symlink(binaries.Keyturn, filepath.Join(c.plugins(), "kubectl-keyturn")))
}

// plugins is a folder in the path of the commands.
func (c *commands) plugins() string { return filepath.Join(c.dir, "plugins") }

// pluginAnswers runs the commands of the page of kubectl keyturn, as kubectl runs a plugin. They reach the actuator through the API server.
func (r *release) pluginAnswers() {
	r.Helper()
	r.kubelet.forwards()
	c := newCommands(r, pluginPage)
	c.link("examples", "../../examples")
	c.plugin()
	c.inNamespace(exampleNamespace)
	for _, asked := range []struct{ command, want string }{
		{"kubectl keyturn status", "keyturn-actuator-0 leads."},
		{"kubectl keyturn explain deployment/web", "It was last rolled at"},
		{"kubectl keyturn history --since 2h", "deployment/web"},
		{"kubectl keyturn history --all-namespaces --verb", "EVENT"},
		{"kubectl keyturn clusters", "local"},
		{"kubectl keyturn timeline", ""},
		{"kubectl keyturn history --installation", "deployment/web"},
		{"kubectl keyturn version", "keyturn-actuator"},
		{"kubectl keyturn dead-letters", "There are no dead letters."},
		{"kubectl keyturn hold", "deployment/web: held, until it is released: load test, until Ada ends it\n  nothing was pending"},
		{"kubectl keyturn roll-now", "deployment/web: asked to roll now\n  nothing was pending"},
		{"kubectl keyturn release", "deployment/web: not on hold by an annotation of its own\n  nothing was pending"},
	} {
		if out := c.shell(c.next(asked.command)); !strings.Contains(out, asked.want) {
			r.Errorf("%s: want %q in\n%s", asked.command, asked.want, out)
		}
	}
	// Whether each program is ready is not of this test: no kubelet says so of all.
	checked := c.shell("{ " + c.next("kubectl keyturn check") + "\n} || true")
	for _, want := range []string{
		"ok       Kubernetes: ", "ok       your rights: complete", "ok       rights of the watcher (keyturn-watcher): complete",
		"ok       rights of the actuator (keyturn-actuator): complete", "ok       keys: ", "ok       Lease: keyturn-actuator-0 leads",
		"ok       admission policy keyturn-system-actuator: ", "ok       admission policy keyturn-system-protected: ",
		"ok       admission policy keyturn-system-keys: ",
		"ok       NATS: reached, as cluster local", "ok       streams: CHANGES ",
	} {
		if !strings.Contains(checked, want) {
			r.Errorf("check: want %q in\n%s", want, checked)
		}
	}
	if out := c.shell(c.next("kubectl keyturn check --pre")); strings.Count(out, "ok ") != 3 {
		r.Errorf("check --pre: want three times ok in\n%s", out)
	}
	if page := testkit.ReadFile(r.T, filepath.Join(c.dir, "rotations.html")); !strings.Contains(page, "<svg") {
		r.Errorf("the timeline is no page: %s", page)
	}
	r.pluginSaysWhatIsMissing(c)
}

// pluginSaysWhatIsMissing asks as somebody who may do nothing, and then as somebody of the group that the example is for.
func (r *release) pluginSaysWhatIsMissing(c *commands) {
	r.Helper()
	const asOnCall = "kubectl keyturn history --since 2h --as ada --as-group oncall"
	const needed = "list statefulsets.apps -n keyturn-system --as ada --as-group oncall"
	for _, want := range []string{
		"no permission to list statefulsets.apps in all namespaces", "or name its namespace with --installation",
	} {
		if out := c.shell("! " + asOnCall); !strings.Contains(out, want) {
			r.Errorf("without a right: want %q in\n%s", want, out)
		}
	}
	c.run("kubectl apply -f examples/kubectl-keyturn.yaml")
	c.awaitRight("granted", needed)
	if out := c.shell(asOnCall); !strings.Contains(out, "deployment/web") || !strings.Contains(out, "The certificate of NATS is not verified") {
		r.Errorf("with the Role of the example:\n%s", out)
	}
	if out := c.shell("kubectl keyturn status --output yaml --as ada --as-group oncall"); !strings.Contains(out, "pod: keyturn-actuator-0") {
		r.Errorf("with the Role of the example, status:\n%s", out)
	}
	c.shell("kubectl -n keyturn-system delete rolebinding keyturn-reader")
	c.awaitRight("refused", needed)
	if out := c.shell("! " + asOnCall + " --installation keyturn-system"); !strings.Contains(out, "no permission to list statefulsets.apps in namespace keyturn-system:") {
		r.Errorf("in a namespace, without a right:\n%s", out)
	}
	c.shell("kubectl -n keyturn-system delete role keyturn-reader")
}
