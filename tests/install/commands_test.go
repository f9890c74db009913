package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// commands are those of a page of docs. A shell runs them as the cluster's admin, in a folder of their own that has deploy.
type commands struct {
	*release
	dir, kubeconfig string
	// left are those that were not run yet, in the order of the page.
	left []docpages.Command
}

// newCommands reads the commands of a page.
func newCommands(r *release, page string) *commands {
	r.Helper()
	content := testkit.ReadFile(r.T, page)
	c := &commands{release: r, dir: r.TempDir(), kubeconfig: plane.Kubeconfig(), left: docpages.Commands(content)}
	c.link("deploy", "../../deploy")
	return c
}

// link makes a path known in the folder that the commands run in.
func (c *commands) link(name, path string) {
	c.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.Symlink(path, filepath.Join(c.dir, name))
	}
	testkit.Must(c, err)
}

// next takes the first command that is left and begins so.
func (c *commands) next(beginning string) string {
	c.Helper()
	at := slices.IndexFunc(c.left, func(command docpages.Command) bool { return strings.HasPrefix(command.Line, beginning) })
	if at < 0 {
		c.Fatalf("the page has no further command %q; left are %+v", beginning, c.left)
	}
	command := c.left[at].Line
	c.left = slices.Delete(c.left, at, at+1)
	return command
}

// run runs the first command that is left and begins so, which must succeed.
func (c *commands) run(beginning string) {
	c.Helper()
	c.shell(c.next(beginning))
}

// shell runs a command, which must succeed, and returns its output.
func (c *commands) shell(command string) string {
	c.Helper()
	path := []string{filepath.Dir(c.binary), c.plugins()}
	for _, program := range []string{build.Kubectl, build.NATSKeys} {
		path = append(path, filepath.Dir(build.Tool(c.T, program)))
	}
	ctx, stop := running.WithTimeout(c.Context(), 2*testkit.Patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.WaitDelay = time.Second // Its programs have the pipes, too.
	cmd.Dir = c.dir
	cmd.Env = []string{
		"PATH=" + strings.Join(append(path, os.Getenv("PATH")), ":"), "HOME=" + c.home, "KUBECONFIG=" + c.kubeconfig,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// awaitRight waits until the API server has granted or refused a right, as kubectl auth can-i is asked for it: it learns of a role by and by.
func (c *commands) awaitRight(answer, right string) {
	c.Helper()
	testkit.Await(c.T, "the API server has "+answer+": "+right, func(context.Context) bool {
		return strings.HasSuffix(c.shell("kubectl auth can-i --quiet "+right+" && echo granted || echo refused"), answer+"\n")
	})
}

// inPod takes the first command that is left and begins so, a kubectl exec, and returns what it runs in the pod, with each flag in one word.
func (c *commands) inPod(beginning string) []string {
	c.Helper()
	_, command, found := strings.Cut(c.next(beginning), " -- ")
	if !found {
		c.Fatalf("%q is no kubectl exec", beginning)
	}
	var words []string
	for word := range strings.FieldsSeq(command) {
		if last := len(words) - 1; last >= 0 && strings.HasPrefix(words[last], "--") && !strings.HasPrefix(word, "-") {
			words[last] += "=" + word
			continue
		}
		words = append(words, word)
	}
	return words
}
