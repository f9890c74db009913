package docpages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThePageOfATestHasTheseCommands(t *testing.T) {
	page := "Run `kubectl get pods`, or:\n\n" +
		"    helm install keyturn \\\n        --wait        # takes a minute\n" +
		"    NAME   READY\n\n" +
		"```sh\nmake image && kind load image-archive a.tar\n```\n" +
		"```console\n$ make demo\nmake is not run here\n```\n" +
		"```yaml\nkubectl is no command here\n```\n" +
		"    for one in a b; do\n        kubectl get $one\n    done\n\n" +
		"1. Then\n\n       kubectl apply -k . -l 'a#b'\n"
	want := []Command{
		{Line: "kubectl get pods", Inline: true},
		{Line: "helm install keyturn         --wait"},
		{Line: "make image && kind load image-archive a.tar"},
		{Line: "make demo"},
		{Line: "for one in a b; do\nkubectl get $one\ndone"},
		{Line: "kubectl apply -k . -l 'a#b'"},
	}
	if diff := cmp.Diff(want, Commands(page)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
